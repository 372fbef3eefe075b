// Command samplemodel is a small scripted model for the quick start and for
// tests: it speaks OpenAI's chat completions and Responses, and Anthropic's
// Messages, needs no key, and plays what a scenario says instead of thinking.
//
// # Endpoints
//
//	POST /v1/chat/completions        a completion, streamed or not
//	POST /v1/messages                a message, streamed or not
//	POST /v1/messages/count_tokens   about how many tokens a request has
//	POST /v1/responses               a response, streamed or not
//	POST /v1/responses/input_tokens  about how many tokens a request has
//	GET  /v1/models                  the scenarios, as models
//	GET  /healthz                    {"ok": true}
//
// A request is read strictly where this program reads it at all: model, stream,
// what was said, and whether tools are offered. Other members are accepted and not
// looked at. A refusal has the shape of its API. As the providers do, Messages needs
// the header anthropic-version and max_tokens, and refuses a tool_use that the next
// message does not answer; Responses refuses a call without an output.
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
//	fault          cut: the answer breaks off in the middle; stall: it stops there;
//	               error: a stream ends in an error there, and an answer is one
//	blocks         of a message, before its text; as they are
//	items          of a response, before its text; as they are, with ids
//	status, body   an error instead of an answer; the body is the API's own if absent
//
// A call is {"name", "arguments"}; arguments that are a string stand verbatim,
// so that broken ones can be played. In a text, {{/results/0/title}} is the
// value at that JSON Pointer in the newest tool result that has one.
//
// Where the request offers tools, calls are native tool_calls, under names with
// an underscore for each character that such names cannot have. Where it does
// not, a call is text: {"tool":{"name":…,"arguments":…}}. In messages and responses
// there is no call as text: without tools the answer has the turn's text alone.
//
// Nothing is remembered. Which turn it is follows from the messages: how many
// answers of the assistant stand after the user's last question, but for those
// whose calls were refused.
package main

import "github.com/callgate/callgate/tools/internal/sample"

func main() { sample.Main(run) }
