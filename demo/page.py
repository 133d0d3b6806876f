"""The page of the report: its frame, its colours, and what fits on a phone."""

FAILOVER = """<h2>The death of a leader</h2>
<p>Broker {victim} was killed with -9 while the flights flowed.{office} The other two named new
leaders {elected} s later. The producer, an ordinary librdkafka, waited {gap} at most between two
acknowledgements of a partition that lost its leader.</p>{plot}
<h3>The longest wait, from close by</h3>{close}
<div class=wide><table><tr><th class=number>partition<th class=number>leader before
<th class=number>leader after<th class=number>longest wait<th class=number>in sync at the end{rows}
</table></div>"""

SUCCESSION = """<h2>The death of the loader</h2>
<p>The loader follows the topic on Spark. It was killed with -9 when the files and the manifest of
a commit were stored, and right before the commit itself: none of them count. Another loader took
the table over {took_over} s later, by a commit that raised its writer epoch from {before} to
{epoch}. Had the first one only slept, its next commit would be refused. The successor's first
commit of flights came {committed} s after the death, with {rows} rows.</p>"""

LATEST = """<p>{flights} flights with a tail number became {planes} rows; {keyless} flights have
none, and the ledger counts them as keyless. Those that flew most:</p>
<div class=wide><table><tr><th>plane<th class=number>flights sent<th>latest<th>route<th>day{rows}
</table></div>"""

PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>Ottla: flights into two tables</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #5d6878;
  --grid: #e4e8ee; --a: #2563c9; --b: #0f8a5f; --alarm: #c2341d; --shade: #fbe3de; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c;
  --faint: #a3adba; --grid: #2a313b; --a: #6aa3ff; --b: #45c896; --alarm: #ff7a61;
  --shade: #4a2620; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 900px; margin: 2rem auto; padding: 0 1rem; -webkit-text-size-adjust: 100% }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin-bottom: .3rem }}
h2 {{ font-size: 1.25rem; margin-top: 2.2rem }} h3 {{ font-size: 1.05rem; margin: 1.5rem 0 .3rem }}
.made {{ color: var(--faint); margin-top: 0 }}
figure {{ margin: 0 0 1rem }} svg {{ width: 100%; height: auto; display: block }}
svg.narrow {{ display: none }}
@media (max-width: 640px) {{ svg.narrow {{ display: block }} svg.broad {{ display: none }} }}
svg text {{ font-size: 14px; fill: var(--ink) }} svg .tick {{ fill: var(--faint) }}
.grid {{ stroke: var(--grid) }} polyline {{ fill: none; stroke-width: 2.5 }}
.acknowledged {{ stroke: var(--a); background: var(--a) }}
.lake {{ stroke: var(--b); background: var(--b) }}
rect.span {{ fill: var(--shade) }} i.span {{ background: var(--shade) }}
svg text.span {{ fill: var(--alarm); font-weight: bold }}
line.mark {{ stroke: var(--alarm); stroke-dasharray: 4 3 }}
circle.mark {{ fill: var(--alarm) }}
svg text.number {{ fill: var(--paper); font-weight: bold; font-size: 13px }}
.legend {{ list-style: none; padding: 0; margin: .2rem 0; display: flex; flex-wrap: wrap;
  gap: .1rem 1.4rem }} .legend li {{ display: flex; align-items: first baseline; gap: .5rem }}
.legend i {{ width: 1.6em; height: 3px; flex: none; align-self: center }}
.legend i.span {{ height: 1em }}
b.mark {{ background: var(--alarm); color: var(--paper); border-radius: 50%; width: 1.4em;
  line-height: 1.4em; text-align: center; font-size: .85rem; flex: none }}
.bar {{ fill: var(--b) }} table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--grid);
  vertical-align: top }}
.number {{ text-align: right; font-variant-numeric: tabular-nums }}
code {{ font-size: .9rem }}
.right {{ color: var(--b) }} .wrong {{ color: var(--alarm); font-weight: bold }}
div.wide {{ overflow-x: auto }} div.wide td, div.wide th {{ white-space: nowrap }}
@media (max-width: 640px) {{
  div.wide td, div.wide th {{ padding: .35rem .2rem; font-size: .85rem }}
  div.wide th {{ white-space: normal; vertical-align: bottom }}
  table.checks tr {{ display: grid; grid-template-columns: 1fr 1fr 4.5rem }}
  table.checks td:first-child {{ grid-column: 1 / -1; border: 0; padding-bottom: 0 }}
  table.checks th:first-child {{ display: none }} }}
table.machine th {{ font-weight: normal; color: var(--faint); white-space: nowrap }}
table.machine td {{ overflow-wrap: anywhere }}
</style>
<h1>{verdict}</h1><p class=made>336,776 flights from New York, 2013. Made {made}.</p>
<h2>Records over time</h2>{progress}
{failover}
{succession}
<h2>Rows of each commit of flights</h2>{commits}
<h2>Planes: the latest of each</h2>{planes}{latest}
<h2>Proof: table flights</h2>
<p>A Delta table of every record. The source's side is what the producer counted and hashed.</p>
{flights_proof}
<h2>Proof: table planes</h2>
<p>A changelog table, also in Delta's format. The source's side is a replay of what was sent, in
plain Python.</p>
{planes_proof}
<p>Ledgers: end - start = loaded + the other terms; what none of them explains is unexplained.
Terms that are 0 everywhere (control, aborted, compacted, deleted, unreadable, absent, dead letters,
keyless) have no column.</p>
<h2>On what it ran</h2><table class=machine>{machine}</table>
</html>
"""
