// Package responses is the wire of models that speak OpenAI's Responses API, and the face in front of
// them. It sends nothing of a reply that the kernel has not judged, but what a switch of the upstream's entry
// lets pass. The numbers are those of the fact sheet that docs/conformance.md follows.
//
//	POST /v1/responses               one response, judged; or a whole run of tools
//	POST /v1/responses/input_tokens  how many tokens a request would take
//
// # The request
//
// It is read strictly. Members by which the provider acts, or brings content that the request
// does not show, are refused or have a switch: conversation, previous_response_id, background,
// prompt, hosted tools, MCP servers of the provider, tools within input. The tools of the
// request are names of tools in the registry; the model gets descriptions and schemas from there.
// A tool that is no function has the name of its type, shell, local_shell, apply_patch or computer;
// a custom tool has its own name, and its arguments are {"input": text}. One of a namespace is
// namespace.name. Each call of the input must be answered once, by its call_id.
//
// # The reply
//
// All calls of a reply are judged together with its text, whatever their type (RS-12): none
// passes unless all do. A refused reply goes back to the model, with its items as they were
// received and one result for each call in the type of its kind. Reasoning, and items of the
// provider's own tools that a switch allows, are not judged. The provider asks for each call
// over MCP, and the gateway answers by the policy for the tool label.name (RS-37).
//
// # Streams
//
// Text flows as the parser releases it, reasoning as it comes. From the first call on everything
// is held until the reply has ended and is judged. A run of several turns is one response: the
// items of later turns follow those of earlier ones, numbered without gaps, and the terminal
// event lists all. A failure before anything was sent is an error with its status; one after it
// is response.failed with the code. While nothing can be sent, comments are.
//
// # How a reply is read
//
// A reply is a list of items, whose types are rows of one table: messages with texts and refusals, reasoning, calls of the
// client, requests to allow a call at the provider, items of the provider's own (RS-36), and unknown ones. A shell_call with a
// container of the provider is the provider's own. An event that brings texts or calls is only taken about an item that has
// them, and no name or type is taken that is a known one in other letters: some clients read names without regard to case.
//
// A call can stand in up to five places of a stream: in its added item, which may have a piece of it, or {} in its place, in
// deltas, in the event that ends them, in its done item, and in the reply of the terminal event. Each place that states it must
// state the same bytes (RS-43), and the same name; so must each place of a text. The arguments of a function may be written
// otherwise in a later place, if they are the same JSON: those of the first place hold. An item that only the terminal event has
// counts as any other; the terminal event may list no items (RS-44). An item may come whole, in the event that ends it.
//
// Items are found by their output_index, which rises; items that share one, by their ids. An event without one is about the item
// that its item_id names, which may be the call_id of a call, or about the only one that is open; where it may be about several
// it is refused. The terminal event must list all items in both cases, if one is a call (RS-47), but for a message before a call
// that has not ended. A call that has neither id has that of its first event, and no other call may have it. The id of an item,
// and that of the response, may change (RS-46): that of the response is the first one, and so is that of an item that is passed
// on at once; a call has the last. So may the call_id of a call that has an output_index: it keeps the first. Once a
// sequence_number of the pieces of texts has risen, each must (RS-45); an event that was lost is found by the texts, which every
// stream states twice. obfuscation is never read (RS-48).
//
// A reply is whole once response.completed or response.incomplete came. Anything after the terminal event but [DONE], and what
// repeats it, is refused, and so is a stream that ends without one.
package responses
