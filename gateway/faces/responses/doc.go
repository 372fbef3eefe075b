// Package responses is the face in front of models that speak OpenAI's Responses API. It
// stands on the loop of gateway/turns and on the reader of upstream/responses, and sends
// nothing of a reply that the kernel has not judged, but what a switch of the upstream's entry
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
package responses
