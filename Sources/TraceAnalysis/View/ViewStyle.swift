// How the page of a trace looks, light and dark.

extension ViewPage {
    static let style = #"""
        :root {
          color-scheme: light dark;
          --paper: #ffffff; --panel: #f6f7f9; --ink: #1b2230; --soft: #697386; --edge: #dfe3ea; --accent: #2456d6; --mark: #c4258a;
          --hit: #ffd84a; --on-frame: #10151f; --shade: rgba(16, 21, 31, .06);
        }
        :root[data-theme=dark] {
          --paper: #11151d; --panel: #181d28; --ink: #e7eaf0; --soft: #95a0b4; --edge: #2a3140; --accent: #86a9ff; --mark: #ff7cc8;
          --hit: #ffcf33; --on-frame: #0b0e14; --shade: rgba(255, 255, 255, .05);
        }
        * { box-sizing: border-box; }
        html, body { height: 100%; margin: 0; }
        body { display: flex; flex-direction: column; background: var(--paper); color: var(--ink); font: 14px/1.4 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
        header { display: flex; align-items: center; gap: 6px 16px; padding: 8px 14px; border-bottom: 1px solid var(--edge); background: var(--panel); }
        header h1 { font-size: 15px; margin: 0; }
        header h1 { white-space: nowrap; max-width: 34ch; overflow: hidden; text-overflow: ellipsis; }
        header .facts { color: var(--soft); font-size: 12.5px; flex: 0 1 auto; min-width: 0; max-width: 60ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        nav { display: flex; gap: 2px; flex: none; }
        header .tool { flex: none; padding: 4px 6px; }
        nav button, .tool { border: 1px solid transparent; background: none; color: var(--soft); padding: 4px 10px; border-radius: 6px; font: inherit; cursor: pointer; }
        nav button[aria-selected=true] { background: var(--paper); border-color: var(--edge); color: var(--ink); font-weight: 600; }
        .tool:hover, nav button:hover { color: var(--ink); }
        button:focus-visible, input:focus-visible, select:focus-visible, canvas:focus-visible, th:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
        .push { margin-left: auto; }
        input[type=search], select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge); border-radius: 6px; padding: 4px 8px; }
        input[type=search] { width: 24ch; flex: none; }
        #matches { color: var(--soft); font-size: 12.5px; white-space: nowrap; }
        main { flex: 1; min-height: 0; position: relative; }
        section.page { position: absolute; inset: 0; display: none; flex-direction: column; }
        section.page.on { display: flex; }
        .bar { display: flex; gap: 10px; align-items: center; padding: 6px 14px; font-size: 12.5px; color: var(--soft); min-height: 36px; flex-wrap: wrap; }
        .crumbs { display: flex; flex-wrap: wrap; gap: 2px; }
        .crumbs button { border: 0; background: var(--shade); color: var(--ink); border-radius: 4px; padding: 1px 7px; font: inherit; cursor: pointer; max-width: 28ch; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .scroll { flex: 1; min-height: 0; overflow: auto; }
        canvas { display: block; }
        .details { border-top: 1px solid var(--edge); background: var(--panel); padding: 7px 14px; font-size: 13px; min-height: 52px; }
        .details b { font-weight: 600; word-break: break-all; }
        .details .soft { color: var(--soft); }
        table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
        thead th { position: sticky; top: 0; background: var(--panel); border-bottom: 1px solid var(--edge); text-align: right; padding: 6px 10px; cursor: pointer; white-space: nowrap; font-weight: 600; }
        thead th.name, td.name { text-align: left; width: 99%; max-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        thead th[aria-sort]::after { content: " ▾"; color: var(--accent); }
        thead th[aria-sort=ascending]::after { content: " ▴"; }
        td { text-align: right; padding: 3px 10px; border-bottom: 1px solid var(--edge); white-space: nowrap; }
        td.name span { color: var(--soft); }
        tbody tr { cursor: pointer; }
        tbody tr:hover { background: var(--shade); }
        td .meter { display: inline-block; width: 70px; height: 8px; background: var(--shade); border-radius: 4px; overflow: hidden; vertical-align: middle; }
        td .meter i { display: block; height: 100%; background: var(--accent); }
        tr.hit td.name { background: color-mix(in srgb, var(--hit) 35%, transparent); }
        .tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--paper); padding: 6px 10px; border-radius: 6px; font-size: 12.5px; max-width: 60ch; z-index: 5; display: none; white-space: pre-line; word-break: break-word; }
        .notes { color: #b4690e; } :root[data-theme=dark] .notes { color: #ffb454; }
        dialog { border: 1px solid var(--edge); border-radius: 10px; background: var(--paper); color: var(--ink); padding: 18px 22px; }
        dialog h2 { margin: 0 0 8px; font-size: 16px; } dialog td { border: 0; text-align: left; padding: 2px 14px 2px 0; white-space: normal; }
        kbd { background: var(--shade); border: 1px solid var(--edge); border-radius: 4px; padding: 0 5px; font: 12px ui-monospace, monospace; }
        @media (max-width: 700px) { input[type=search] { width: 14ch; } header .facts { display: none; } }
        """#
}
