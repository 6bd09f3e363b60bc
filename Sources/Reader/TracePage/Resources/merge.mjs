// Trees made of parts of a tree: threads as one, who calls a function, what it calls.

const branch = fn => ({ fn, calls: 0, total: 0, self: 0, flags: 0, below: new Map() });
function grown(parent, fn, key) {
  let child = parent.below.get(key);
  if (!child) parent.below.set(key, child = branch(fn));
  return child;
}
function add(to, tree, i, total) {
  to.calls += tree.calls[i];
  to.total += total;
  to.self += tree.self[i];
  to.flags |= tree.flags[i];
}

/// As columns, in preorder, the largest first.
function planted(top, title, tree) {
  const columns = { depth: [], fn: [], calls: [], total: [], self: [], flags: [], names: [...tree.names, title] };
  const stack = [[top, 0]];
  while (stack.length) {
    const [node, depth] = stack.pop();
    columns.depth.push(depth);
    columns.fn.push(node.fn);
    for (const key of ["calls", "total", "self", "flags"]) columns[key].push(node[key]);
    for (const child of [...node.below.values()].sort((a, b) => a.total - b.total)) stack.push([child, depth + 1]);
  }
  return new tree.constructor(columns, tree.functions);
}

/// Key of nodes that were summed up: below a merged node they are one node, too, whatever their names.
const summedUp = "summed up";

/// Several of the tree's tops as one thread.
export function mergedThreads(tree, tops, title) {
  const top = branch(-1 - tree.names.length);
  for (const start of tops) {
    const at = [top];
    add(top, tree, start, tree.total[start]);
    for (let i = start + 1; i < tree.end[start]; i++) {
      const depth = tree.depth[i] - tree.depth[start], isFunction = tree.isFunction(i);
      const node = grown(at[depth - 1], tree.fn[i], isFunction ? tree.fn[i] : summedUp);
      add(node, tree, i, tree.total[i]);
      at[depth] = node;
      at.length = depth + 1;
    }
  }
  return planted(top, title, tree);
}

/// Merges a function's nodes: returns callers as a tree upside down, callees, and how many of its calls they hold, which may be fewer
/// than there are, since small paths were summed up. A recursive call's time is in its outermost's.
export function around(tree, fn) {
  const up = branch(fn), down = branch(fn), outer = [];
  let calls = 0;
  const here = new Map();
  for (let i = 0; i < tree.count; i++) {
    while (outer.length && tree.end[outer[outer.length - 1]] <= i) outer.pop();
    const isInside = outer.length > 0, isIt = tree.fn[i] === fn;
    if (isIt) {
      calls += tree.calls[i];
      let node = up;
      const total = isInside ? 0 : tree.total[i];
      add(up, tree, i, total);
      for (let p = tree.parent[i]; p >= 0; p = tree.parent[p]) {
        node = grown(node, tree.fn[p], tree.isFunction(p) ? tree.fn[p] : tree.name(p));
        add(node, tree, i, total);
      }
    }
    if (isInside) {
      const parent = here.get(tree.parent[i]);
      const node = grown(parent, tree.fn[i], tree.isFunction(i) ? tree.fn[i] : summedUp);
      add(node, tree, i, tree.total[i]);
      here.set(i, node);
    } else if (isIt) {
      add(down, tree, i, tree.total[i]);
      here.set(i, down);
      outer.push(i);
    }
  }
  return { callers: planted(up, "", tree), callees: planted(down, "", tree), calls };
}
