// Command samplemodel is a small scripted model for the quick start and for
// tests: it speaks OpenAI's chat completions, needs no key, and plays what a
// scenario says instead of thinking.
//
// # Endpoints
//
//	POST /v1/chat/completions  a completion, streamed or not
//	GET  /v1/models            the scenarios, as models
//	GET  /healthz              {"ok": true}
//
// A request is read strictly where this program reads it at all: model,
// messages, tools, n, stream and stream_options. Other members are accepted and
// not looked at. A refusal has OpenAI's shape, {"error":{"message", "type",
// "param", "code"}}.
//
// # Scenarios
//
// The model's name chooses the scenario; a name that no scenario has plays the
// one of --scenario. A scenario is one JSON object, read strictly:
//
//	about     what it shows, for --list
//	turns     what is answered in turn; the last is repeated
//	chunk     how many characters a streamed piece of text has; 16 if absent
//	write     how many bytes are sent at a time; whole events if absent
//	pause_ms  how long it waits after each of them
//
// A turn has text, calls or both, and perhaps
//
//	after_refusal  the turn that stands in for it when its call was refused
//	fault          cut: the answer breaks off in the middle; stall: it stops there
//
// A call is {"name", "arguments"}; arguments that are a string stand verbatim,
// so that broken ones can be played. In a text, {{/results/0/title}} is the
// value at that JSON Pointer in the newest tool result that has one.
//
// Where the request offers tools, calls are native tool_calls, under names with
// an underscore for each character that such names cannot have. Where it does
// not, a call is text: {"tool":{"name":…,"arguments":…}}.
//
// Nothing is remembered. Which turn it is follows from the messages: how many
// answers of the assistant stand after the user's last question, but for those
// whose calls were refused.
package main

import "github.com/callgate/callgate/internal/sample"

func main() { sample.Main(run) }
