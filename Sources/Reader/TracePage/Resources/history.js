const tip = document.getElementById('tip');
function show(svg, index, x, y) {
  const section = svg.closest('section');
  hide();
  for (const other of section.querySelectorAll('svg')) {
    const dot = other.querySelector(`[data-i="${index}"]`);
    if (!dot) continue;
    dot.classList.add('on');
    const cursor = other.querySelector('.cursor');
    cursor.removeAttribute('hidden');
    cursor.setAttribute('x1', dot.getAttribute('cx'));
    cursor.setAttribute('x2', dot.getAttribute('cx'));
  }
  const own = svg.querySelector(`[data-i="${index}"]`);
  if (!own) return;
  const box = own.getBoundingClientRect();
  tip.textContent = own.dataset.tip;
  tip.hidden = false;
  const wide = document.documentElement.clientWidth, high = document.documentElement.clientHeight;
  tip.style.left = Math.max(4, Math.min((x ?? box.right) + 14, wide - tip.offsetWidth - 4)) + 'px';
  const below = (y ?? box.bottom) + 14;
  tip.style.top = (below + tip.offsetHeight > high ? below - tip.offsetHeight - 28 : below) + 'px';
}
function hide() {
  tip.hidden = true;
  document.querySelectorAll('.dot.on').forEach(dot => dot.classList.remove('on'));
  document.querySelectorAll('.cursor').forEach(cursor => cursor.setAttribute('hidden', ''));
}
for (const svg of document.querySelectorAll('svg')) {
  const dots = [...svg.querySelectorAll('.dot')];
  let index = dots.length - 1;
  svg.addEventListener('pointermove', event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    const away = dot => Math.abs(dot.getAttribute('cx') - at);
    index = dots.reduce((best, dot, i) => away(dot) < away(dots[best]) ? i : best, 0);
    show(svg, dots[index].dataset.i, event.clientX, event.clientY);
  });
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('blur', hide);
  svg.addEventListener('keydown', event => {
    if (event.key === 'Escape') return hide();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    index = Math.max(0, Math.min(dots.length - 1, index + (tip.hidden ? 0 : step)));
    show(svg, dots[index].dataset.i);
  });
}
document.documentElement.dataset.ready = 'yes';
