package elicit

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
)

const (
	// maxQuestions bounds how much a tool asks at once.
	maxQuestions = 16
	// maxAsked bounds the bytes of that, and of the tool's own state: they are kept in
	// the store.
	maxAsked = 256 << 10
)

// ReadQuestions reads questions of these kinds that may be put to a caller. Its errors say
// nothing in the tool's words.
func ReadQuestions(asked *tool.InputRequired, kinds []string) (read *tool.InputRequired, err error) {
	defer safe.RecoverZero(&read, &err)
	size := 0
	if asked.State != nil {
		size = len(*asked.State)
	}
	switch {
	case len(kinds) == 0:
		return nil, errors.New("a tool has asked that may not")
	case len(asked.Questions) == 0 && asked.State == nil:
		return nil, errors.New("a tool has asked nothing")
	case len(asked.Questions) > maxQuestions:
		return nil, errors.New("a tool has asked too much at once")
	case asked.State != nil && !utf8.ValidString(*asked.State):
		return nil, errors.New("a tool's own state is no text")
	}
	read = &tool.InputRequired{State: asked.State, Questions: make([]tool.Question, 0, len(asked.Questions))}
	for _, q := range asked.Questions {
		if !slices.Contains(kinds, q.Kind) {
			return nil, errors.New("a tool has asked what it may not, or what its caller cannot answer")
		}
		question, err := elicitation.Read(q.Name, q.Kind, q.Method, q.Params)
		if err != nil {
			return nil, err
		}
		q.Params = question.Params()
		read.Questions = append(read.Questions, q)
		if size += len(q.Name) + len(q.Params); size > maxAsked {
			break
		}
	}
	if size > maxAsked {
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

// MayStillAsk tells whether a tool may ask now what it has asked: the operator may have
// taken that away since.
func MayStillAsk(asked *tool.InputRequired, may []string) bool {
	return len(may) > 0 && onlyKinds(asked, may)
}

// onlyKinds tells whether all questions are of these kinds.
func onlyKinds(asked *tool.InputRequired, kinds []string) bool {
	return !slices.ContainsFunc(asked.Questions, func(q tool.Question) bool { return !slices.Contains(kinds, q.Kind) })
}
