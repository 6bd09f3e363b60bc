// styles.cjs FILE…: style sheets, held against the grammar of CSS and the definitions of its properties (css-tree has those of the W3C),
// and custom properties that nothing sets. A line for each problem, and status 1 if there is one.
"use strict";
const fs = require("fs");
// Additions for CSS newer than css-tree 2.3 (Debian 12 and 13): SVG 2's geometry, min() as a track's size, color-mix().
const { lexer, parse, walk, findAll, generate } = require("css-tree").fork({
  properties: { r: "<length-percentage>" },
  types: { "fixed-breadth": "| <min()>", "color": "| <color-mix()>", "color-mix()": "color-mix( in <ident> , [ <color> && <percentage>? ]#{2} )" },
});

let problems = 0;
for (const file of process.argv.slice(2)) {
  const report = (line, text) => {
    problems++;
    console.log(`${file}:${line}: ${text}`);
  };
  const sheet = parse(fs.readFileSync(file, "utf8"), { positions: true, onParseError: error => report(error.line, error.message) });
  const set = new Map(findAll(sheet, node => node.type === "Declaration" && node.property.startsWith("--")).map(node => [node.property, generate(node.value)]));
  walk(sheet, { visit: "Declaration", enter(node) {
    if (node.property.startsWith("--")) return;
    const value = generate(node.value).replace(/var\((--[\w-]+)\)/g, (use, name) => {
      if (!set.has(name)) report(node.loc.start.line, `nothing sets ${name}`);
      return set.get(name) || use;
    });
    const { error } = lexer.matchProperty(node.property, value);
    if (error) report(node.loc.start.line, `${node.property}: ${value}: ${error.rawMessage || error.message}`);
  } });
}
process.exit(problems ? 1 : 0);
