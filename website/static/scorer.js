// The order of search results: names and pages of the guide first, programs and records last.
const FIRST = [["docs/troubleshooting", 9], ["docs/cuda", 10], ["docs/tutorials/", 2], ["docs/design", -4], ["docs/", 8],
  ["start", 6], ["guide", 6], ["index", 4]];
const LAST = [["benchmarks/", -25], ["examples/", -12], ["CHANGELOG", -15], ["licenses/", -15],
  ["docs/measurements", -25], ["docs/algorithms", -15], ["docs/support-matrix", -15],
  ["docs/papers", -15], ["docs/iterations", -15], ["docs/solve-table", -15],
  ["_modules/", -30]];

var Scorer = {
  // docname, title, anchor, description, score, file name, kind
  score: ([page, , , , score]) => {
    // of two names the shorter path is meant: wollemi.solve, not wollemi.interop.jax.solve
    if (page.startsWith("reference/")) return score + 20 - 3 * page.split(".").length;
    const found = [...LAST, ...FIRST].find(([start]) => page.startsWith(start));
    return score + (found ? found[1] : 0);
  },
  objNameMatch: 30,      // the name itself: Csr
  objPartialMatch: 4,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 18,
  partialTitle: 8,
  term: 5,
  partialTerm: 2,
};
