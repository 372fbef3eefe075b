// Package responses reads the replies of models that speak OpenAI's Responses API, whole
// and as streams of events. It is the one reading of this wire: bytes become a Reply with
// its items, and the calls in them. It judges nothing. The numbers are those of the fact
// sheet that docs/conformance.md follows (RS-30 to RS-50).
//
// # Items
//
// A reply is a list of items. Their types fall into classes:
//
//	Message    text and refusals of the model
//	Reasoning  what the model thought
//	Call       the client acts: function_call, custom_tool_call, shell_call,
//	           local_shell_call, apply_patch_call, computer_call (RS-12)
//	Approval   mcp_approval_request: the client allows a call at the provider (RS-37)
//	Hosted     the provider acts: web_search_call, mcp_call and the like (RS-36)
//	Unknown    any other type
//
// A shell_call with a container of the provider is Hosted. Hosted items are refused but for
// the types that Options.Hosted allows, and Unknown ones but for Options.Unknown. Even so, an event
// that brings texts or calls is only taken about an item that has them, and no name or type is taken
// that is a known one in other letters: some clients read names without regard to case.
//
// # Streams
//
// A call can stand in up to five places of a stream: in its added item, in deltas, in the
// event that ends them, in its done item, and in the reply of the terminal event. Each place
// that states it must state the same bytes (RS-43); so must each place of a text. An item
// that only the terminal event has counts as any other. The terminal event may list no
// items (RS-44).
//
// An item may come whole, in the event that ends it. Items are found by their output_index, which starts at 0 and rises by one; an event about
// an item without one is refused (RS-47). The id of an item, and that of the response, may
// change (RS-46): Reply.ID is the first one, and Item.ID the first one for what is passed on at
// once, and the last one for calls. sequence_number may be absent, start anywhere and leave
// numbers out, but must rise (RS-45): an event that was lost is found by the texts, which
// every stream states twice. The member obfuscation is never read (RS-48).
//
// A reply is whole once response.completed or response.incomplete came. response.failed and
// error are a *ProviderError. Anything after the terminal event but [DONE] is refused, and so
// is a stream that ends without one.
//
// A delta that equals the one before but for its text, its sequence_number and its obfuscation is
// recognised by its bytes, and costs no allocation. It is read as it would be in full.
//
// # JSON
//
// Strict: valid UTF-8, no name twice in one object, no half of a surrogate pair, at most 128
// levels. Anything else is refused, never repaired. Arguments of calls are the model's bytes
// after the string that held them was unescaped; actions and operations are the bytes of
// their objects.
package responses
