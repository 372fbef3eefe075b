// Package refuse has the refusals of the kernel that more than one of its steps gives, and those
// that package gateway/calls gives, too: their codes, and their words for models and callers. It
// decides nothing.
package refuse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// NothingDone is the message where Callgate failed before anything was executed.
const NothingDone = "Callgate failed before the call was handled. Nothing was executed; the operator has been told."

// AfterDispatch is the refusal where Callgate failed during the execution of a call:
// it may have had an effect.
func AfterDispatch(stage refusal.Stage, cause error) *refusal.Error {
	const message = "Callgate failed while the call was handled. Whether it had an effect is not known: find out before asking for it again. The operator has been told."
	return refusal.At(stage, refusal.Internal, message).WithCause(cause)
}

// NotAdmitted refuses an Admission that Admit did not make.
func NotAdmitted() *refusal.Error {
	return refusal.At(refusal.Identity, refusal.Internal, NothingDone).WithCause(errors.New("an admission that Admit did not make"))
}

// UnknownCaller refuses a request without a known credential where one is required.
func UnknownCaller() error {
	return refusal.New(refusal.Unauthenticated, "A known credential is required. Nothing was executed; the caller must send a valid one.")
}

// NeedsOperator refuses a request without a known credential for what is for operators.
func NeedsOperator() *refusal.Error {
	return refusal.New(refusal.Unauthenticated, "This needs the credential of an operator.")
}

// UnknownVersion refuses a version that a tool does not have.
func UnknownVersion(tool, version string) error {
	message := fmt.Sprintf("There is no version %s of %s. Use a version that you were given, or name none.", parser.Quote(version),
		parser.Quote(tool))
	refused := refusal.New(refusal.UnknownTool, message)
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: -1, Message: message}}
	return refused
}

// Denied refuses a tool that the policy never lets the agent use here.
func Denied(tool string) error {
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may not use %s here. The policy of this project decides, and trying again will not change it; use another tool, or say what you cannot do.", tool))
}

// ByUnknown refuses a call whose conditions ask what cannot be said: of a past that is lost, or of arguments that are not
// counted exactly.
func ByUnknown(tool string) error {
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but the policy asks what was done before, and that is not known, or cannot be counted with these arguments. Nothing was executed; if other arguments do not pass, say what you could not do.", tool))
}

// ByLabels refuses a call because of what its thread has read, by the use of another tool where it can be said.
func ByLabels(tool, used string) error {
	why := "because of what earlier calls in it have read"
	if used != "" {
		why = "since " + used + " was used in it"
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but not like this in this thread any more, %s. Sending it again will not change that; say what you could not do.", tool, why))
}

// ByCounts refuses a call that goes beyond what its thread, or its caller, may have.
func ByCounts(tool string, caller bool) error {
	why := "this thread has had what it may have"
	if caller {
		why = "you have had what you may have for now"
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"You may use %s here, but not once more like this: %s. Sending it again will not change that; say what you could not do.", tool,
		why))
}

// ByResults refuses a call that others must come before. needed is the tool of those, where it can be said, and members are
// the arguments in which they must be equal.
func ByResults(tool, needed string, members []string) error {
	if needed == "" {
		return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
			"%s needs an earlier result of another tool in this thread, and there is none. Send that call first, alone, and this one when it has answered.", tool))
	}
	same := ""
	if len(members) > 0 {
		same = ", for the same " + strings.Join(members, " and ")
	}
	return refusal.New(refusal.PermissionDenied, fmt.Sprintf(
		"%s needs an earlier result of %s in this thread%s. Send that call first, alone, and this one when it has answered.", tool, needed,
		same))
}

// ThreadRequired refuses a call in no thread, of a tool that uses threads.
func ThreadRequired(tool string) *refusal.Error {
	return refusal.New(refusal.ThreadRequired, fmt.Sprintf("%s needs a thread, and the request names none. Only the application can change that: it must name its thread in the request, or in the header Callgate-Thread.", tool))
}

// ThreadClosed refuses a call in a thread that was closed.
func ThreadClosed() error {
	return refusal.New(refusal.ThreadClosed,
		"This thread was closed, and this tool cannot be used in it any more. Only the application can begin another one.")
}

// ThreadsFull refuses a new thread where no more can be kept.
func ThreadsFull(cause error) error {
	refused := refusal.New(refusal.ThreadsFull,
		"Too many threads are kept for this caller, so that no new one can begin. Nothing was executed; try again later.").WithCause(cause)
	refused.RetryAfterMS = time.Minute.Milliseconds()
	return refused
}

// ThreadCalls refuses a call in a thread that has had as many as it may have.
func ThreadCalls(most int) error {
	return refusal.New(refusal.ThreadLimit, fmt.Sprintf(
		"With this call the thread would have more than the %d calls that it may have, so nothing was executed. Trying again will not change that: say what is left to do. Only the application can begin another thread.", most))
}

// NewThreads refuses the first call of a thread whose caller has begun as many as it may begin.
func NewThreads(most int64, unit string) error {
	return refusal.New(refusal.ThreadLimit, fmt.Sprintf(
		"The caller has begun %d threads within the last %s, and may begin no more now, so nothing was executed. A thread that has begun already can be used; a new one must wait.", most, unit))
}

// EqualCalls refuses a call that its thread has had too often.
func EqualCalls(made int) error {
	return loop(fmt.Sprintf("You have made this very call %d times in this thread. It was not run again. Use what it has answered, or change the arguments.", made))
}

// EqualResults refuses a call that its thread has had too often with the same result.
func EqualResults(made int) error {
	return loop(fmt.Sprintf("You have made this very call %d times in this thread and got the same result. It was not run again. Use that result, or change the arguments.", made))
}

func loop(message string) error {
	refused := refusal.New(refusal.LoopDetected, message)
	refused.Stage = refusal.Rate
	return refused
}

// ThreadsUnavailable refuses a call where nobody can say what its thread has done.
func ThreadsUnavailable(cause error) *refusal.Error {
	refused := refusal.New(refusal.ThreadsUnavailable, "It could not be found out what this thread has done, so nothing was executed. Retry later; changing the call will not help.").WithCause(cause)
	refused.RetryAfterMS = time.Second.Milliseconds()
	return refused
}

// Quarantined refuses a tool whose current definition was not accepted.
func Quarantined(tool string) error {
	return refusal.New(refusal.ToolQuarantined, fmt.Sprintf(
		"%s cannot be called now: the operator has not accepted its server's current definition. Trying again will not change that; use another tool, or say what you cannot do.", tool))
}

// Stopped refuses what an operator has stopped. The reason is for operators alone.
func Stopped() *refusal.Error {
	return refusal.New(refusal.Stopped, "The operator has stopped this. Nothing was executed. Do not try again; say that it was stopped.")
}

// StopsUnknown refuses everything while it is not known what operators have stopped.
func StopsUnknown() error {
	return refusal.At(refusal.Permission, refusal.StoreUnavailable,
		"It could not be found out whether this was stopped, so nothing was executed. Retry later; changing the call will not help.")
}

// startingPause is when a call is worth sending again whose tool's server is being asked for its tools.
const startingPause = time.Second

// Starting refuses a tool whose server has not listed its tools since the gateway started, or since it announced a change.
// It is being asked for them, or could not be asked, and is again after a pause.
func Starting(tool string, pause time.Duration) error {
	message := "%s cannot be called yet: its server is starting and has not listed its tools. Nothing was executed: wait %d ms, then send the same call again."
	if pause > 0 {
		message = "%s cannot be called now: its server was asked for its tools and has not listed them; the operator sees why in the log. Nothing was executed. It is asked again within %d ms: send the same call once more after that, or continue without it."
	}
	pause = cmp.Or(pause, startingPause)
	refused := refusal.New(refusal.ToolStarting, fmt.Sprintf(message, tool, pause.Milliseconds()))
	refused.RetryAfterMS = pause.Milliseconds()
	return refused
}

// UnreadQuestions refuses answers whose questions cannot be read.
func UnreadQuestions(cause error) error {
	return refusal.New(refusal.StoreUnavailable,
		"What was asked cannot be looked up now, so nothing was executed. Send the answers again later.").WithCause(cause)
}

// Unlimited is the message where there is no limiter.
const Unlimited = "The limits cannot be checked now, so this request was refused. Retry later."

// notRecorded is the message where a decision cannot be recorded.
const notRecorded = "The decision could not be recorded and nothing was executed. Retry later; changing the call will not help."

// Unrecorded refuses what cannot be written down.
func Unrecorded(cause error) *refusal.Error {
	return refusal.New(refusal.AuditUnavailable, notRecorded).WithCause(cause)
}

// Unsaved refuses a call that the store did not take.
func Unsaved(ctx context.Context, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable,
		"The call could not be saved and was not executed. Retry later; changing the call will not help.")
	return refusal.AsCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// UnsavedAgain refuses a request that the store did not take, and that an earlier one may have been the same as: by its
// key, or its answers.
func UnsavedAgain(ctx context.Context, same string, cause error) error {
	refused := refusal.New(refusal.StoreUnavailable, fmt.Sprintf("The call could not be saved, so this request executed nothing; "+
		"whether an earlier one with the same %[1]s did is not known. Send it again later with the same %[1]s.", same))
	return refusal.AsCanceled(ctx, refusal.Execute, refused.WithCause(cause))
}

// Timeout is the answer for a tool that did not answer: what acts once may have acted.
func Timeout(tool, effect string) error {
	if effect == "once" {
		return refusal.New(refusal.OutcomeUnknown,
			fmt.Sprintf("%s did not answer in time. Whether it acted is not known; do not send the call again without finding out.", tool))
	}
	return refusal.New(refusal.ToolTimeout, fmt.Sprintf("%s did not answer in time.", tool))
}
