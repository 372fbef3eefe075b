package elicit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway/elicitation"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	// maxQuestions bounds how much a tool asks at once.
	maxQuestions = 16
	// maxQuestionBytes bounds the bytes of that, and of the tool's own state: they are kept in
	// the store.
	maxQuestionBytes = 256 << 10
)

// ReadQuestions reads questions of these kinds that may be put to a caller. Its errors say
// nothing in the tool's words.
func ReadQuestions(request *tool.InputRequired, kinds []string) (read *tool.InputRequired, err error) {
	defer safe.RecoverZero(&read, &err)
	size := 0
	if request.State != nil {
		size = len(*request.State)
	}
	switch {
	case len(kinds) == 0:
		return nil, errors.New("a tool has asked that may not")
	case len(request.Questions) == 0 && request.State == nil:
		return nil, errors.New("a tool has asked nothing")
	case len(request.Questions) > maxQuestions:
		return nil, errors.New("a tool has asked too much at once")
	case request.State != nil && !utf8.ValidString(*request.State):
		return nil, errors.New("a tool's own state is no text")
	}
	read = &tool.InputRequired{State: request.State, Questions: make([]tool.Question, 0, len(request.Questions))}
	for _, q := range request.Questions {
		if !slices.Contains(kinds, q.Kind) {
			return nil, errors.New("a tool has asked what it may not, or what its caller cannot answer")
		}
		question, err := elicitation.Read(q.Name, q.Kind, q.Method, q.Params)
		if err != nil {
			return nil, err
		}
		q.Params = question.Params()
		read.Questions = append(read.Questions, q)
		if size += len(q.Name) + len(q.Params); size > maxQuestionBytes {
			break
		}
	}
	if size > maxQuestionBytes {
		return nil, errors.New("a tool has asked too much at once")
	}
	byName := func(a, b tool.Question) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(read.Questions, byName)
	for i, q := range read.Questions[min(1, len(read.Questions)):] {
		if q.Name == read.Questions[i].Name {
			return nil, errors.New("a tool has asked two questions of one name")
		}
	}
	return read, nil
}

// CheckQuestions checks the questions in what a tool said, before a caller sees them. A tool asks
// instead of acting: questions beside anything else than a failure are dropped, and if a
// question may not be put to this caller, which answers those kinds, the call has failed. name is
// that of the tool, as messages write it.
func CheckQuestions(output tool.Result, err error, kinds []string, name string) (tool.Result, error) {
	questions := output.InputRequired
	if output.InputRequired = nil; questions == nil {
		return output, err
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.ToolFailed {
		return output, err
	}
	read, unusable := ReadQuestions(questions, kinds)
	if unusable != nil {
		return output, refusal.New(refusal.ToolFailed, fmt.Sprintf(
			"%s asked for something that cannot be passed on, so it got no answer. Use another tool, or say what you cannot do.",
			name)).WithCause(unusable)
	}
	output.InputRequired = read
	return output, err
}

// MayStillAsk reports whether a tool may still ask its questions: the operator may have
// withdrawn that since.
func MayStillAsk(request *tool.InputRequired, may []string) bool {
	return len(may) > 0 && onlyKinds(request, may)
}

// onlyKinds reports whether all questions are of these kinds.
func onlyKinds(request *tool.InputRequired, kinds []string) bool {
	return !slices.ContainsFunc(request.Questions, func(q tool.Question) bool { return !slices.Contains(kinds, q.Kind) })
}
