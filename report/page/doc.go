// Package page makes one web page of a result: report.html, which works from disk and asks for nothing else.
//
// [Run], [Sweep], [Compare], [Plan] and [Validation] make a page; [Page.Write] writes it. The page has the pictures of
// [clifftop/report/plot], drawn in the browser from their numbers, so that hovering shows the values and each picture
// has a table. Its scripts, styles and data are in it, and its content security policy forbids to load anything.
//
// Equal input gives equal bytes. Numbers have six digits. Of a run's course there are at most 512 points, of a
// distribution the edges of bins at most 1/32 wide, of iterations the first 600 of a run; of a sweep three loads are
// looked at so closely.
package page
