// Package replies_test runs one table of model replies through the three APIs of models, by the real
// faces over HTTP, whole and as streams; and through a fourth one, which package invented adds to their engine
// with the least that a wire is made of.
//
// A case in testdata/replies says what a model answers, part by part, in words of no API, and under
// which rules; a printer for each API writes the reply as that API has it, and a reader takes apart what
// the application gets. What comes out is one line, which stands below the case: once where all APIs
// and both forms agree, else for each that differs.
//
//	case a call beside text
//	  with mode=orchestrate native_prose=refuse
//	  text I look.
//	  call web_search {"query":"go"}
//	  turn
//	  text Found it.
//	  > all: ...
//
// Lines in front of the parts:
//
//	on chat messages      the APIs that can say it; without it, all that have the kinds of its parts
//	with NAME=VALUE …     rules of the upstream, see setRule; without it, nothing is repaired
//	hooks redact|deny     what a hook at texts does with the secret, which cases write {secret}
//	budget N              of tokens, which covers the requests to the model
//	people                web_search asks people first, and nobody answers
//	tools NAME …          that the request offers; without it, web_search and time_now; none: it has none
//	choice auto|none|required|only NAME|NAME
//	output SCHEMA         that the answer is to be JSON by; json_object: any object
//	single                at most one call in a turn
//	differs               a stream may have another verdict than the same reply whole
//	as WORD …             deviations of the envelope, see the printers; on all: no_type and plain (the
//	                      content type), mark (of the byte order), called_model and called_usage (a call stands there)
//
// Parts: text, thought, refusal, cite (of the text before it), hosted (a search at the provider) and
// call, followed by the rest of the line, or by a literal of Go if it begins with a quotation mark (in names, %20 is a space); block
// is a part, item or object of members as it is on the wire. turn begins the next reply; the last one
// is repeated. end says why a reply ended: called, done, cut, filtered, paused, or =WORD of the wire
// itself; without it, the model has called or is done. SECRET is shown by no answer that is refused, and
// HIDDEN by none.
//
// go test ./test/replies -update writes what comes out into the files.
package replies_test
