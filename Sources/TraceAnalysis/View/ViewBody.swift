// What the page of a trace is made of.

extension ViewPage {
    static let body = #"""
        <header>
        <h1 id="title"></h1><span class="facts" id="facts"></span>
        <nav role="tablist"><button id="tab-flame" role="tab">Flame graph</button><button id="tab-line" role="tab">Timeline</button><button id="tab-table" role="tab">Functions</button></nav>
        <span class="push"></span><span id="matches" role="status"></span>
        <input type="search" id="search" placeholder="Search ( / )" aria-label="Search functions and modules" spellcheck="false">
        <button class="tool" id="theme" title="Dark or light (t)">◐</button><button class="tool" id="help" title="Keys (?)">?</button>
        </header>
        <main>
        <section class="page" id="page-flame"><div class="bar"><select id="root" aria-label="Thread"></select><span class="crumbs" id="crumbs"></span><span class="push notes" id="notes"></span></div>
        <div class="scroll" id="flame-box"><canvas id="flame" tabindex="0" aria-label="Flame graph"></canvas></div><div class="details" id="flame-details"></div></section>
        <section class="page" id="page-line"><div class="bar"><span id="line-range"></span><span class="push">wheel: zoom · drag: move · double click: zoom in to a call, or out</span></div>
        <div class="scroll" id="line-box"><canvas id="line" tabindex="0" aria-label="Timeline"></canvas></div></section>
        <section class="page" id="page-table"><div class="bar"><span id="table-count"></span></div>
        <div class="scroll"><table><thead><tr id="table-head"></tr></thead><tbody id="table-body"></tbody></table></div></section>
        </main>
        <div class="tip" id="tip"></div>
        <dialog id="keys"><h2>Keys</h2><table>
        <tr><td><kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd></td><td>flame graph, timeline, functions</td></tr>
        <tr><td><kbd>/</kbd></td><td>search; a regular expression works too</td></tr>
        <tr><td><kbd>Esc</kbd></td><td>end the search, or zoom out</td></tr>
        <tr><td><kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd></td><td>caller, longest callee, neighbours; in the timeline move</td></tr>
        <tr><td><kbd>Enter</kbd></td><td>zoom in to the chosen frame</td></tr>
        <tr><td><kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd></td><td>timeline: zoom in, out, show all</td></tr>
        <tr><td><kbd>t</kbd></td><td>dark or light</td></tr>
        </table><form method="dialog"><button class="tool">Close</button></form></dialog>
        """#
}
