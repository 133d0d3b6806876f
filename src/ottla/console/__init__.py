"""The console: pages about a cluster for a browser, in a process of its own (`ottla console`).

Begin with `app`, which puts the pages together; `visit` is what each page is given.

A page is added in four steps:

1. A function in `diagnosis` or `operations` returns frozen values. The console only shows them.
2. A handler in the module of its subject calls it and renders a template. `part` waits for a
   limited time and turns an error into a box, so that one failed section leaves the others:

       async def show_groups(visit: Visit) -> Response:
           groups = await part(groups_of(visit.admin, visit.query("filter")))
           return visit.page("groups.html", groups=groups)

       ROUTES = (get("/groups", show_groups), post("/groups/rewind", rewind))
       MENU = MenuEntry("Groups", "/groups", "g")  # A page of the menu, with its key.

   A page of one topic is added to `visit.TABS`. Names that may hold any character (groups, users)
   go into the query, as `/groups/one?name=…`, by `address`. A `post` handler gets its fields from
   `visit.field(name)`; the log-in and the form's token have been checked by then. It ends with
   `visit.go(address(…), *sentences)`, whose sentences the next page shows. An OttlaError that
   escapes becomes a page that says what is wrong.
3. The module is added to `MODULES` in `app`, and its `MENU`, if it has one, to `MENU` there.
4. The template, in `pages/`, extends the base and uses the macros of `pages/parts.html`: `section`
   shows a part or what is wrong with it, `form` begins a form with its token. Scripts and styles
   are only those of `static/`: the browser runs and applies nothing inside a page. Tests are in
   `tests/system/console`; `pages.py` there has what they share.
"""
