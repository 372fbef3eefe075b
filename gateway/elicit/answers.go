package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/elicitation"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	// statePath and answersPath are the paths of a state and of answers in a caller's
	// request.
	statePath   = "/requestState"
	answersPath = "/inputResponses"
	// maxState bounds the state that a caller gives, which is the id of a call.
	maxState = 128
)

// Answers are those that a tool is sent, with its own state.
type Answers struct {
	State  *string
	ByName map[string]json.RawMessage
	paths  []answerPath
}

// answerPath is a path that an answer names.
type answerPath struct{ question, pointer, path string }

// ReadAnswers checks answers against their questions. It ignores answers to other
// questions.
func ReadAnswers(request *tool.InputRequired, answers map[string]json.RawMessage) (*Answers, []refusal.Violation, error) {
	read := &Answers{State: request.State, ByName: make(map[string]json.RawMessage, len(request.Questions))}
	var violations []refusal.Violation
	for _, q := range request.Questions {
		question, err := elicitation.Read(q.Name, q.Kind, q.Method, q.Params)
		if err != nil {
			return nil, nil, fmt.Errorf("the questions of the tool cannot be read: %w", err)
		}
		raw, has := answers[q.Name]
		if !has {
			violations = append(violations, refusal.Violation{Code: refusal.MissingArgument, Path: answerPointer(q.Name), Offset: -1,
				Message: fmt.Sprintf(
					"The answer to %s is missing. Send the call again with it.", parser.Quote(q.Name))})
			continue
		}
		answer, faults := question.Validate(raw)
		for _, f := range faults {
			violations = append(violations, refusal.Violation{
				Code: f.Code, Path: answerPointer(q.Name, f.Path...), Offset: -1,
				Message: fmt.Sprintf("In the answer to %s: %s", parser.Quote(q.Name), f.Message),
			})
		}
		for i, path := range answer.Paths {
			read.paths = append(read.paths, answerPath{q.Name, answerPointer(q.Name, "roots", strconv.Itoa(i), "uri"), path})
		}
		read.ByName[q.Name] = answer.JSON
	}
	refusal.Sort(violations)
	return read, violations, nil
}

// onlyMissing reports whether answers are missing and none has a fault of its own.
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

// Outside are the folders that answers name and that are not within bounds, up to so many.
// Nil answers name none.
func (a *Answers) Outside(bounds boundary.Lists, most int) (violations []refusal.Violation, err error) {
	if a == nil {
		return nil, nil
	}
	for _, f := range a.paths {
		if len(violations) == most {
			break
		}
		err := bounds.Within(boundary.KindPath, f.path)
		if err == nil {
			continue
		}
		var outside *boundary.OutsideError
		if !errors.As(err, &outside) {
			return nil, err
		}
		violations = append(violations, refusal.Violation{Code: refusal.BoundaryViolation, Path: f.pointer, Offset: -1,
			Message: fmt.Sprintf(
				"The answer to %s names what is outside this project. %s", parser.Quote(f.question), outside.Reason)})
	}
	return violations, nil
}

// answerKeyPrefix is how the keys begin of calls that answer a question. No face lets a
// caller's key hold a space, and a call under such a key of the caller's is refused.
const answerKeyPrefix = "asked by "

// AnswerKey is the idempotency key of a call that answers a question, regardless of the key
// it sends: the first answer stands. It is empty if the call answers none.
func (d *Dialogue) AnswerKey() string {
	if d == nil || !ValidState(d.RequestState) {
		return ""
	}
	return answerKeyPrefix + d.RequestState
}

// ApprovalKey is the idempotency key of a call that names the approval which it waits for, and
// has no other key: sent twice, it runs once. It is empty if the call names none.
func (d *Dialogue) ApprovalKey() string {
	if !ValidState(d.ApprovalState()) {
		return ""
	}
	return answerKeyPrefix + d.Approval
}

// IsAnswerKey reports whether a key belongs to a call that answers a question.
func IsAnswerKey(key string) bool { return strings.HasPrefix(key, answerKeyPrefix) }

// ValidState reports whether a state may be the id of a call.
func ValidState(state string) bool {
	return state != "" && len(state) <= maxState && ascii.IsVisible(state)
}

// UnknownState refuses every state that names no question to this caller and call. It does
// not give the reason.
func UnknownState() *refusal.Error {
	const message = "This state names nothing that was asked of this call, or no longer. Send the call again without it, unchanged or as a new call."
	refused := refusal.At(refusal.Schema, refusal.InvalidValue, message)
	refused.Violations = []refusal.Violation{{Code: refusal.InvalidValue, Path: statePath, Offset: -1, Message: message}}
	return refused
}

// AnswersTo reads the caller's answers to questions, and refuses the call if they do not fit them, with
// at most so many violations. If all that is wrong is that some are missing, it returns what was not
// answered, too.
func (d *Dialogue) AnswersTo(questions *tool.InputRequired, most int) (*Answers, *Unanswered, error) {
	answers, violations, err := ReadAnswers(questions, d.Answers)
	if err != nil {
		return nil, nil, err
	}
	violations = violations[:min(len(violations), most)]
	if len(violations) == 0 {
		return answers, nil, nil
	}
	var unanswered *Unanswered
	if onlyMissing(violations) {
		unanswered = &Unanswered{Questions: questions, Dialogue: d}
	}
	refused := refusal.At(refusal.Schema, violations[0].Code, refusal.Summary(violations))
	refused.Violations = violations
	return nil, unanswered, refused
}

// AnswersInAdvance returns the call's answers to the questions that a tool has just asked.
// If one is missing, invalid or outside the bounds of the project, it returns nil, and the caller is
// asked.
func (d *Dialogue) AnswersInAdvance(questions *tool.InputRequired, bounds boundary.Lists) (answers *Answers) {
	if questions == nil || d == nil || d.RequestState != "" || len(d.Answers) == 0 || len(questions.Questions) == 0 {
		return nil
	}
	defer safe.Catch(func(error) { answers = nil })
	read, violations, err := ReadAnswers(questions, d.Answers)
	if err != nil || len(violations) > 0 {
		return nil
	}
	if outside, err := read.Outside(bounds, 1); err != nil || len(outside) > 0 {
		return nil
	}
	return read
}
