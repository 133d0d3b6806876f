"""The frame of a table's report: its chapters, its colours, and what fits on a phone."""

PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #5d6878;
  --grid: #e4e8ee; --card: #f5f7fa }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c;
  --faint: #a3adba; --grid: #2a313b; --card: #1a2029 }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 900px; margin: 2rem auto; padding: 0 1rem; -webkit-text-size-adjust: 100% }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin-bottom: .3rem; overflow-wrap: anywhere }}
h2 {{ font-size: 1.25rem; margin: 2.2rem 0 .4rem }} h2 + p {{ margin-top: 0 }}
.faint {{ color: var(--faint) }} .made {{ color: var(--faint); margin-top: 0;
  overflow-wrap: anywhere }}
.numbers {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  gap: .6rem; padding: 0; margin: 1.2rem 0 }}
.numbers div {{ background: var(--card); border-radius: .5rem; padding: .6rem .8rem }}
.numbers dt {{ color: var(--faint); font-size: .85rem }}
.numbers dd {{ margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--grid);
  vertical-align: top }} th {{ color: var(--faint); font-weight: normal }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }}
.when {{ white-space: nowrap }}
div.wide {{ overflow-x: auto }}
</style>
<h1>{title}</h1><p class=made>{table}<br>Made {made}.</p>
<dl class=numbers>{numbers}</dl>
<h2>Commits</h2>
<p class=faint>The age of rows is how old they were when they were committed, by their timestamps.
</p>{older}{commits}
<h2>What became of every offset</h2>
<p class=faint>Each partition's offsets from the first load's start to its position.</p>{ledger}
<h2>Sizes of the files that count</h2>{files}
<h2>On record</h2>{record}
<h2>Partitions</h2>{partitions}
</html>
"""
