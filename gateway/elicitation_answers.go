package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

const (
	// statePath and answersPath are where a state and answers stand in what a caller
	// sends.
	statePath   = "/requestState"
	answersPath = "/inputResponses"
	// maxState bounds the state that a caller gives, which is the id of a call.
	maxState = 128
	// answerKeyPrefix is how the keys begin of calls that answer a question. No face lets a
	// caller's key hold a space, and the kernel refuses those that begin so.
	answerKeyPrefix = "asked by "
)

// answersForTool is sent to a tool that has asked: its own state, and the answers.
type answersForTool struct {
	state   *string
	answers map[string]json.RawMessage
}

// unanswered holds questions that a call was to answer and does not.
type unanswered struct {
	asked    *tool.InputRequired
	dialogue *Dialogue
}

// answerPath is a path that an answer names.
type answerPath struct{ question, pointer, path string }

// checkAnswers is the third step of the stage schema: where the call answers what a tool has
// asked, it is the call that was asked, and the answers fit their questions. Answers
// without a state are judged by what the tool will ask.
func checkAnswers(ctx context.Context, c *call) error {
	d := c.input.Dialogue
	if !d.bringsAnswers() {
		return nil
	}
	if c.mode != ModeCall {
		return errors.New("an answer in a call that is not executed here")
	}
	if d.RequestState == "" {
		return nil
	}
	asked, err := c.loadQuestions(ctx, d.RequestState)
	if err != nil {
		return err
	}
	answers, folders, violations, err := judgeAnswers(asked, d.Answers)
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		if onlyMissing(violations) {
			c.unanswered = &unanswered{asked, d}
		}
		refused := refusal.At(refusal.Schema, violations[0].Code, summary(violations))
		refused.Violations = violations
		return refused
	}
	c.answers, c.answerPaths = &answersForTool{asked.State, answers}, folders
	return nil
}

// loadQuestions is what the call asked that a state names, where this one is the same
// call of the same caller. What is wrong with a state is not told.
func (c *call) loadQuestions(ctx context.Context, state string) (*tool.InputRequired, error) {
	if !validRequestState(state) {
		return nil, refuseUnknownState()
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	asking := c.trace.start()
	prior, err := c.kernel.get(ctx, state, principalName(c.principal))
	c.trace.storeStep(ctx, asking, err)
	if errors.Is(err, store.ErrNotFound) {
		return nil, refuseUnknownState()
	}
	if err != nil {
		return nil, refusal.New(refusal.StoreUnavailable, "What was asked cannot be looked up now, so nothing was executed. Send the answers again later.").WithCause(err)
	}
	meta := prior.meta
	if prior.Step != store.Ended || meta.Asked == nil || meta.AskedCallDigest != c.questionDigest() || !c.mayStillAsk(meta.Asked) {
		return nil, refuseUnknownState()
	}
	return meta.Asked, nil
}

// mayStillAsk tells whether the tool may ask now what it has asked: the operator may have
// taken that away since.
func (c *call) mayStillAsk(asked *tool.InputRequired) bool {
	may := c.tool.Run().Asks
	return len(may) > 0 && !slices.ContainsFunc(asked.Questions, func(q tool.Question) bool { return !slices.Contains(may, q.Kind) })
}

// validRequestState tells whether a state may be the id of a call.
func validRequestState(state string) bool {
	return state != "" && len(state) <= maxState && ascii.IsVisible(state)
}

// refuseUnknownState is said of every state that names no question to this caller and call.
func refuseUnknownState() error {
	const message = "This state names nothing that was asked of this call, or no longer. Send the call again without it, exactly as before or anew."
	refused := refusal.At(refusal.Schema, refusal.InvalidValue, message)
	refused.Violations = []refusal.Violation{{Code: refusal.InvalidValue, Path: statePath, Offset: -1, Message: message}}
	return refused
}

// judgeAnswers judges answers by what was asked. Those to anything else are not
// looked at.
func judgeAnswers(asked *tool.InputRequired, answers map[string]json.RawMessage) (sent map[string]json.RawMessage, folders []answerPath, violations []refusal.Violation, err error) {
	sent = make(map[string]json.RawMessage, len(asked.Questions))
	for _, q := range asked.Questions {
		question, err := elicitation.Read(q.Name, q.Kind, q.Method, q.Params)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("what was asked cannot be read: %w", err)
		}
		raw, has := answers[q.Name]
		if !has {
			violations = append(violations, refusal.Violation{Code: refusal.MissingArgument, Path: answerPointer(q.Name), Offset: -1, Message: fmt.Sprintf(
				"The answer to %s is missing. Send the call again with it.", parser.Quote(q.Name))})
			continue
		}
		answer, faults := question.Validate(raw)
		for _, f := range faults {
			violations = append(violations, refusal.Violation{
				Code: f.Code, Path: answerPointer(q.Name, f.Path...), Offset: -1, Message: fmt.Sprintf("In the answer to %s: %s", parser.Quote(q.Name), f.Message),
			})
		}
		for i, path := range answer.Paths {
			folders = append(folders, answerPath{q.Name, answerPointer(q.Name, "roots", strconv.Itoa(i), "uri"), path})
		}
		sent[q.Name] = answer.JSON
	}
	refusal.Sort(violations)
	return sent, folders, violations[:min(len(violations), maxViolations)], nil
}

// onlyMissing tells whether answers are missing and none has a fault of its own.
func onlyMissing(violations []refusal.Violation) bool {
	for _, v := range violations {
		if v.Code != refusal.MissingArgument || strings.Count(v.Path, "/") != 2 {
			return false
		}
	}
	return true
}

// answerPointer is the JSON Pointer of a place within an answer.
func answerPointer(question string, path ...string) string {
	return answersPath + refusal.Pointer(question) + refusal.Pointer(path...)
}

// answersOutside are the folders of answers that are not within the project, up to so many.
func (c *call) answersOutside(most int) (violations []refusal.Violation, err error) {
	for _, f := range c.answerPaths {
		if len(violations) == most {
			break
		}
		err := c.project.Bounds().Within(boundary.KindPath, f.path)
		if err == nil {
			continue
		}
		var outside *boundary.OutsideError
		if !errors.As(err, &outside) {
			return nil, err
		}
		violations = append(violations, refusal.Violation{Code: refusal.BoundaryViolation, Path: f.pointer, Offset: -1, Message: fmt.Sprintf(
			"The answer to %s names what is outside this project. %s", parser.Quote(f.question), outside.Reason)})
	}
	return violations, nil
}

// answerKey is the idempotency key of a call that answers a question, whatever other
// one it brings: what a question is answered with stands.
func (c *call) answerKey() string {
	d := c.input.Dialogue
	if d == nil || !validRequestState(d.RequestState) {
		return ""
	}
	return answerKeyPrefix + d.RequestState
}

// mayBringAnswers tells whether a call may have brought answers to its tool. They are not kept
// with its arguments, so it is never dispatched again.
func (c *call) mayBringAnswers() bool {
	return c.answers != nil || c.input.Dialogue.bringsAnswers() && len(c.allowedQuestions()) > 0
}
