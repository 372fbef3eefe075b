// Package chat reads answers of OpenAI chat completions, whole and streamed: completions and
// chunks, errors of providers, and lists of models. It puts the chunks of a stream together, and
// does no I/O. Its errors hold no text of an answer.
//
// # JSON
//
// Strict (RFC 8259, valid UTF-8, no lone surrogates, no name twice in one
// object): anything else is refused, never repaired. Unknown members are kept
// byte for byte, but on one line, in Extra. Arguments of calls are the
// model's bytes after the string that held them was unescaped; some servers
// write the object itself, whose bytes they are then.
//
// Members that decide nothing (id, created, model, object, role and usage) count as
// absent where their values cannot be read. The index of a choice may be absent where it is the
// only one. Content may be a list of parts: of texts, which are joined, of what the model thought,
// which becomes reasoning_content, and of refusals.
//
// # Assembly
//
// A piece of a call belongs to the call last begun at its index. The first
// piece that has the id, or the name, decides it; pieces after it may repeat them, but the
// name only if there is an id: without one, a second name may be that of a second call.
// Another id at an index begins another call: one provider streams so. Indexes rise from that of
// the first call, which may be above 0, as there may be gaps (one provider counts blocks of text
// too); only a piece with an id or a name can follow a gap.
//
// A piece without an index belongs to the call of its id. With another id or another name
// it begins a call. With neither it belongs to the last call, if the arguments of each call before
// were complete when the next one began.
//
// A name or a type that changes, an id of two calls, indexes that fall: all that is
// refused, and so is a piece that may belong to two calls.
package chat
