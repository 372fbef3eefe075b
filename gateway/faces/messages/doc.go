// Package messages is the face of the Anthropic Messages API in front of a model: it forwards
// requests to an upstream that speaks the same API, and sends nothing of a reply that the
// kernel has not judged. AM-numbers are rules of the wire (docs/conformance.md).
//
//	POST /v1/messages               a reply, judged; or a whole run of tools
//	POST /v1/messages/count_tokens  how many tokens a request has
//
// # The request
//
// It is read strictly. A value that the model's signature binds is never rewritten: system and
// messages go to the provider byte for byte (AM-18, AM-19). A custom tool that differs from
// the registry's gets the registry's description and schema; the change depends on the
// registry alone, and is the same for every turn. The offered tools are tools without those of
// defer_loading, edited by the messages (AM-12, AM-16). The history must be whole: each
// tool_use is answered once, at the beginning of the next message. A member that lets the provider call
// tools itself is refused unless the upstream's entry allows it by its own switch, and so are
// members that are not known.
//
// anthropic-version and anthropic-beta are forwarded as they are. The caller's credential is a
// bearer token or x-api-key.
//
// # The reply
//
// Its blocks are judged together: the text as text beside native calls, each tool_use as a
// call. A call passes with the stop_reason tool_use alone (AM-35). All calls of a turn pass, or
// none. A refused turn goes back to the model exactly as it was received, with a tool_result
// for each call, or is the answer: an error whose details hold the code.
//
// # Streams
//
// Text is sent as the kernel releases it, thinking as it comes, both until the first tool_use.
// From there on nothing but pings is sent until the whole turn was judged; then the rest leaves
// at once. Indexes are dense. A refusal after something was sent is an error event, which ends
// the stream; no block is closed before it.
//
// A turn may be repaired as long as none of its text was sent; thinking of a refused turn stays in
// the stream. Where Callgate runs the tools, thinking is not shown: its signature binds it to
// calls that the application does not have.
package messages
