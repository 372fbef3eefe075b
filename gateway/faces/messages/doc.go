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
// call. A call passes with the stop_reason tool_use, or end_turn in a reply that has ended whole (AM-35).
// All calls of a turn pass, or none. A refused turn goes back to the model exactly as it was received, with a tool_result
// for each call, or is the answer: an error whose details hold the code.
//
// # Streams
//
// Text is sent as the kernel releases it, thinking as it comes, both until the first tool_use.
// The input of a call at the provider is sent once its block has ended, whole.
// From there on nothing but pings is sent until the whole turn was judged; then the rest leaves
// at once. Indexes are dense. A refusal after something was sent is an error event, which ends
// the stream; no block is closed before it.
//
// A turn may be repaired as long as none of its text was sent; thinking of a refused turn stays in
// the stream. Where Callgate runs the tools, thinking is not shown: its signature binds it to
// calls that the application does not have.
//
// # How a reply is read
//
// Strictly, wherever a call can stand; what two readers could understand differently is refused. A whole message has
// content and a stop_reason (AM-30), which is end_turn for text that states none, and each block a known type, unless
// unknown ones are allowed (AM-31). The events of a stream are one message_start, then blocks whose index rises, of which
// several may be open, then the reason why the message stopped, then message_stop (AM-40). A stream is refused when
//
//   - an event has a name that differs from the type in its data;
//   - message_start comes twice (AM-45), or anything but ping after message_stop;
//   - the index of a start does not rise, a delta or a stop belongs to no open block, a text goes on behind a later
//     one, or a block comes after the reason (AM-46, AM-47);
//   - a delta does not fit the type of its block (AM-42);
//   - both the start of a block and its deltas carry input (AM-44), or a block has two signatures (AM-49).
//
// A call may stand whole in message_start, in content_block_start or in deltas (AM-44); no delta with text means {}
// (AM-43), unless another member may hold the input (turns.Elsewhere). A stream is complete once the reason has come and
// no block is open, with message_stop or without (AM-47).
package messages
