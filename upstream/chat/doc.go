// Package chat reads answers of OpenAI chat completions, whole and streamed: completions and
// chunks, errors of providers, and lists of models. It puts the chunks of a stream together, and
// does no I/O. Its errors hold no text of an answer.
//
// # JSON
//
// Strict (RFC 8259, valid UTF-8, no lone surrogates, no name twice in one
// object): anything else is refused, never repaired. Unknown members are kept
// byte for byte, but on one line, in Extra. Arguments of calls are the
// model's bytes after the string that held them was unescaped.
//
// # Assembly
//
// A piece of a call belongs to the call last begun at its index. The first
// piece of a call brings its id and its name, pieces after it may repeat them.
// Another id at an index begins another call: one provider streams so. A piece
// without an index is a whole call. Indexes rise by one from that of the first
// call, which may be above 0 (one provider counts blocks of text too). A name
// or a type that changes, an id that comes late or belongs to another call, a
// gap in the indexes: all that is refused.
package chat
