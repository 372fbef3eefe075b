package elicitation

import (
	"errors"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

const (
	// maxParams bounds the parameters of one question, and maxDepth how deep they and
	// answers nest.
	maxParams = 128 << 10
	maxDepth  = 32
	// maxName bounds the name of a question.
	maxName = 128
)

// methods are those of the kinds; read only.
var methods = map[string]string{
	tool.QuestionForm: "elicitation/create", tool.QuestionURL: "elicitation/create",
	tool.QuestionSampling: "sampling/createMessage", tool.QuestionRoots: "roots/list",
}

// Question is one that may be asked. Its zero value has no answer.
type Question struct {
	kind   string
	params []byte
	form   *form // of the kind form
}

// Read judges a question: a name that an answer can be given under, a method that is
// of its kind, and parameters that are too.
func Read(name, kind, method string, params []byte) (Question, error) {
	if name == "" || len(name) > maxName || !isPlain(name) {
		return Question{}, errors.New("the name of a question is empty, too long or holds what is not shown")
	}
	if known, ok := methods[kind]; !ok || known != method {
		return Question{}, errors.New("a question is of no known kind, or its method is of another")
	}
	members, err := readObject(params)
	if err != nil {
		return Question{}, err
	}
	q := Question{kind: kind}
	var display object
	switch kind {
	case tool.QuestionForm:
		q.form, display, err = readForm(members, params)
	case tool.QuestionURL:
		display, err = readURL(members)
	case tool.QuestionSampling:
		display, err = readSampling(members)
	case tool.QuestionRoots:
		display, err = object{}, members.checkNames()
	}
	if err != nil {
		return Question{}, err
	}
	if q.params, err = wrapper.Marshal(display); err != nil || len(q.params) > maxParams {
		return Question{}, errors.New("a question cannot be encoded, or is too long")
	}
	return q, nil
}

// Params are the parameters as the caller is given them.
func (q Question) Params() []byte { return q.params }

// readObject reads the parameters of a question.
func readObject(params []byte) (members, error) {
	if len(params) > maxParams {
		return nil, errors.New("a question is too long")
	}
	value, err := parser.ReadValue(params, maxDepth)
	if err != nil {
		return nil, errors.New("the parameters of a question are no strict JSON") // its own words would be the tool's
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the parameters of a question are no object")
	}
	return m, nil
}

// isPlain reports whether a text hides nothing.
func isPlain(s string) bool { return wrapper.EscapeText(s) == s }
