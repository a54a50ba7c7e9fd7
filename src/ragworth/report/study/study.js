/* The page of a study: its theme and its charts. */

watchTheme();
if (canUnpack()) {
  watchCharts();
  document.documentElement.dataset.ready = 'yes';
}
