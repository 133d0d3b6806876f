"""The frame of a table's report: its chapters, its colours, and what fits on a phone."""

PAGE = """<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #5d6878;
  --grid: #e4e8ee; --card: #f5f7fa; --alarm: #c2341d; --a: #2563c9; --b: #0f8a5f;
  --loaded: #0f8a5f; --control: #8592a6; --aborted: #b07d12; --compacted: #2563c9;
  --deleted: #c2341d; --unreadable: #8b1a8b; --absent: #5aa7c7; --dead_letters: #d9487d;
  --keyless: #b9a000; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6eaf0; --paper: #12161c;
  --faint: #a3adba; --grid: #2a313b; --card: #1a2029; --alarm: #ff7a61; --a: #6aa3ff;
  --b: #45c896; --loaded: #45c896; --control: #76839a; --aborted: #e0b04c;
  --compacted: #6aa3ff; --deleted: #ff7a61; --unreadable: #d58ad5; --absent: #7cc6e4;
  --dead_letters: #ff8db3; --keyless: #d8c84a; }} }}
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
figure {{ margin: 0 0 1rem }} svg {{ width: 100%; height: auto; display: block }}
svg.narrow {{ display: none }}
@media (max-width: 640px) {{ svg.narrow {{ display: block }} svg.broad {{ display: none }} }}
svg text {{ font-size: 14px; fill: var(--ink) }} svg .tick {{ fill: var(--faint) }}
.grid {{ stroke: var(--grid) }} polyline {{ fill: none; stroke-width: 2.5 }}
.bar {{ fill: var(--b) }} .bytes {{ fill: var(--a) }} .delay {{ fill: var(--a) }}
.sizes {{ stroke: var(--a) }}
.loaded {{ fill: var(--loaded); background: var(--loaded) }}
.control {{ fill: var(--control); background: var(--control) }}
.aborted {{ fill: var(--aborted); background: var(--aborted) }}
.compacted {{ fill: var(--compacted); background: var(--compacted) }}
.deleted {{ fill: var(--deleted); background: var(--deleted) }}
.unreadable {{ fill: var(--unreadable); background: var(--unreadable) }}
.absent {{ fill: var(--absent); background: var(--absent) }}
.dead_letters {{ fill: var(--dead_letters); background: var(--dead_letters) }}
.keyless {{ fill: var(--keyless); background: var(--keyless) }}
.legend {{ list-style: none; padding: 0; margin: .2rem 0; display: flex; flex-wrap: wrap;
  gap: .1rem 1.4rem }} .legend li {{ display: flex; align-items: center; gap: .5rem }}
.legend i {{ width: 1em; height: 1em; border-radius: .2em; flex: none }}
table {{ border-collapse: collapse; width: 100% }}
td, th {{ text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--grid);
  vertical-align: top }} th {{ color: var(--faint); font-weight: normal }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }}
.when {{ white-space: nowrap }}
div.wide {{ overflow-x: auto }} .alarm {{ color: var(--alarm) }}
</style>
<h1>{title}</h1><p class=made>{table}<br>Made {made}.</p>
<dl class=numbers>{numbers}</dl>
<h2>Rows of each commit</h2>{older}{rows}
<h2>Bytes of each commit</h2>{bytes}
<h2>Delay of each load</h2>
<p class=faint>How old its rows were when they were committed, from the newest to the oldest, by
their timestamps.</p>{delays}
<h2>What became of every offset</h2>
<p class=faint>Each partition's offsets from the first load's start to its position.</p>{ledger}
<h2>Sizes of the files that count</h2>{files}
<h2>On record</h2>{record}
<h2>Partitions</h2>{partitions}
</html>
"""
