// Package turns is what the faces in front of a model share: the loop that requests turns of
// the model until one is the answer, and between them repairs refused ones or runs tools; and what is done to a
// reply, of any wire.
//
// # What a wire adds
//
// A Wire reads and writes: it reads requests into a Dialogue, and replies by a Reader into the model of this package
// (Reply, Answer, Part); a Writer writes what passed. Its Spec says the rest as data. A type of part is a Row, whose Kind
// decides alone how such parts are judged, held and shown. Nothing here knows a wire by its name. Serve answers
// requests over a wire, and Options.Prompt runs prompts of a conversation that a face leads itself.
//
// Text goes to a Writer only as far as the kernel has released it: in a stream piece by piece, up to the first call, and
// the rest after the verdict on the whole answer. Calls, refusals and speech follow then, all or none. Everything waits
// for the verdict with stream_buffer: whole, where a call is required, where text beside calls is dropped, and where calls
// are shown as content. Thoughts are not judged: they go out as they come, until the text is refused. The text of a turn
// whose calls run is shown before they do.
//
// Speech is judged by its transcript, as text is. Of several answers each is judged; where one is refused, its refusal is
// the answer at once. With refusals: message the application gets a final answer with a text of Callgate in place of the
// error of a refused answer; text that was sent before stays above it.
//
// The wires whose faces implement Dialect themselves go by the following.
//
// # What a face does, in this order
//
//  1. Begin: the caller is admitted, then the face reads the body (internal/rawjson), of which
//     nothing is repeated in a failure before that. The run is that of the route of the model,
//     whose upstream must speak the face's wire.
//  2. Check the members of the request by the rules of the route.
//  3. SetMode, BringTools, SetOffer and NarrowChoice, and MaxAdded. Each error is a *Failure, and nothing
//     was requested.
//  4. For a stream make an EventWriter and set KeepAlive. Call Answer.
//  5. As Answerer, write the last turn as the answer, or the *Failure: in the stream if that has
//     begun, else by Failure.Write in its API's shape, or by WriteUpstream where the provider's own error
//     goes through byte for byte. A failure with a Message is no error to the application: it is
//     written as a final answer of that text (refusals: message). SetHeaders is called before
//     the first byte, whatever is written; EventWriter does so itself.
//
// A face without a request of HTTP, which shows a run as it happens, sets Observer and Asker
// instead of 4 and 5, and calls Turns.
//
// # What Turns does
//
// It calls Dialect.RequestTurn, and goes by the decisions of the turn that it returns:
//
//   - One is refused: the turn goes back to the model by Dialect.Append, with an outcome for
//     each input, or the run fails. It fails where the turn is Final, where another answer of
//     the model could not pass either (RepairableRefusal), after Rules.MaxRepairs refused turns
//     in a row, and where the model repeats one refused call.
//   - The application runs the calls, or there are none: the decisions are handed over, and
//     this turn is the answer.
//   - Callgate runs the calls: they are executed, all of the turn, and Dialect.Append gets
//     their outcomes. From there on they do not end with the application's request.
//
// After each turn that is not the answer the bounds are checked: bytes added, tokens, wall
// time. The bound of turns is a constraint on the next judgement (Constraints).
//
// # What a dialect may rely on, and must keep to
//
// A run is one goroutine: its methods and the dialect's are called by that goroutine alone,
// but for the function that is given to Wait, which runs in another one while Wait sends
// KeepAlive; it must not write to the application. Nothing is locked.
//
// RequestTurn judges with Constraints, each choice by one Judge or Stream.Close, all calls of
// a choice together (they pass all or none). It returns a turn only if the model's answer is
// complete, and an error otherwise; it must release or record what it judged until then. No
// byte of a call is sent before Turns has returned the turn as the answer; text that was
// released may be sent at once, and then the turn is Final. Errors: a *refusal.Error, an
// *upstream.StatusError, or a *Failure.
//
// Append concerns the turn that was returned last. It adds what the model sent, as it was
// received, and one result for each of its calls, also for those that would have passed
// (Feedback). The wires refuse a conversation with a call and no result (AM-73, RS-90).
//
// A decision that RequestTurn returned is executed, handed over or released by Turns.
package turns
