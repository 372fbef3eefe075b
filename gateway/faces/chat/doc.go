// Package chat is the face in front of a model: it speaks OpenAI's chat
// completions to the application, requests each from the model through upstream, and
// sends nothing of an answer that the kernel has not judged.
//
//	POST /v1/chat/completions  one completion, judged; or a whole run of tools
//
// # The request
//
// It is read strictly. Members that mean nothing here go to the model byte for byte,
// in their order, where they are known to call no tools at the provider, or the
// upstream's entry names them; any other is refused. The history must be whole: ids of calls are there and
// differ within a message, and the messages after one with calls answer each of
// them once. The tools of the request are names of registered tools in OpenAI's
// alphabet: the model gets their descriptions and schemas from the registry, and none of a
// tool that the agent may not use. No header of the caller is sent on.
//
// A body is at most 8 MiB, of at most 16,384 messages and 1,024 tools, and objects in
// it that stand in one another have at most 16,384 members together. It is read once
// the caller was let in, in time linear in its length, and takes a few times its memory.
//
// # Two protocols with the model
//
// Native: the model is given the tools, and its tool_calls are judged as native
// calls, all or none with the text beside them. Text: a system message describes the
// tools and the call language, the history is written in
// that language, and the model's content is judged as a completion.
//
// # Two modes
//
// Enforce: a judged call is handed to the application, which runs it. Orchestrate:
// Callgate runs it, sends its result to the model, and requests the next turn, until the
// model answers in text or a bound is reached.
//
// In both, a refused completion goes back to the model with the reason,
// a few times in a row. A refusal after that is the answer, as an error in
// OpenAI's shape, with the status of its code. Of several choices (n) each is
// judged; where one is refused, its refusal is the answer at once.
//
// A request that names no tools means all that the agent may use where Callgate
// runs them. Where the application does, it means none natively; by the text
// protocol a call that passes is then the content, since a client that names no tools
// reads the call language itself.
//
// # What stands beside text and calls
//
// Speech is judged by its transcript, as text is. Annotations, images, citations and
// logprobs go out with the text that they belong to, behind it, and are dropped with
// it. None goes out in which a call could be found, and logprobs only where their
// tokens are the text. Reasoning is not judged, and goes out as it comes, until the
// content is refused. Other members that a provider adds stay here.
//
// # Streams
//
// Text flows as the parser releases it. A call is judged once its stream has ended, whole,
// and is sent in one piece. A refusal before anything of the answer was sent is an error
// with its status, or is repaired as above; one after it is an error event, and the stream
// ends without [DONE]. In a run, text beside a call is sent as it comes, and the text of the
// next turn follows it behind an empty line ("\n\n"), reasoning too; comments tell which tools
// run.
//
// With refusals: message the application gets a final answer with a text of Callgate, and the
// finish reason stop, in place of the error of a refused completion. Text that was sent before
// stays above it.
package chat
