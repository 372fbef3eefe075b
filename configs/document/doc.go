// Package document reads files strictly, YAML and JSON, into one tree in which
// every value knows its line and column. An unknown or duplicate key, a second
// document, an anchor, a tag or a wrong type is a fault that names the place, what
// was found there and what was expected. A YAML file must end with the line "# end",
// so that one that was cut is never read; JSON that is cut does not parse.
//
// A reader walks the tree by the methods of Node, which report to one Report: it
// never stops at the first fault, and never shows a value that may be a secret.
// Documents of other programs are read by ReadExternal, as strictly as their own
// standards allow.
package document
