// Package configs holds the annotated example configuration, which is embedded
// as the default, and reads a configuration strictly: YAML and CSV files in
// which an unknown or duplicate key, a second document or a wrong type is an
// error with file, line and column, and which must end with the line "# end",
// so that a half-written save can drop nothing. JSON tool files need no such
// line, since JSON that is cut does not parse.
//
// A configuration is one immutable value with a digest over every byte that it
// was read from. It is valid as a whole, or it is not there.
package configs
