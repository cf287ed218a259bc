/** What a run that lost its lock prints, in every case. */
export const lostWarning =
  /^⚠ Lost the migration lock mid-run \(renewal failed\) — another run may have started$/m
