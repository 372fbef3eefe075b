package elicitation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	// maxAnswer bounds one answer.
	maxAnswer = 2 << 20
	// maxRoots bounds how many folders an answer names.
	maxRoots = 64
)

// Answer is one that fits its question.
type Answer struct {
	// JSON is the answer for the tool: one JSON object.
	JSON json.RawMessage
	// Paths are the folders and files that the answer names, in their order. Whether
	// the caller may name them is for others to say.
	Paths []string
}

// Fault is one thing that is wrong with an answer.
type Fault struct {
	Code    refusal.Code
	Path    []string // from the answer
	Message string   // says what to change
}

// maxFaults bounds the faults that are returned for one answer.
const maxFaults = 100

// Validate checks an answer. If it has faults, no answer is returned.
func (q Question) Validate(answer []byte) (Answer, []Fault) {
	if len(answer) > maxAnswer {
		return Answer{}, []Fault{invalid(fmt.Sprintf("must be at most %d bytes long", maxAnswer))}
	}
	value, err := parser.ReadValue(answer, maxDepth)
	if err != nil {
		return Answer{}, []Fault{invalid("must be strict JSON, nested no deeper than " + strconv.Itoa(maxDepth) + " levels")}
	}
	m, faults := asObject(value, nil)
	if faults != nil {
		return Answer{}, faults
	}
	var sent object
	var paths []string
	switch q.kind {
	case tool.QuestionForm:
		sent, faults = q.validateForm(m)
	case tool.QuestionURL:
		sent, faults = validateAction(m)
	case tool.QuestionSampling:
		sent, faults = validateSampling(m)
	case tool.QuestionRoots:
		sent, paths, faults = validateRoots(m)
	default:
		faults = []Fault{invalid("is to no question")}
	}
	if len(faults) > 0 {
		return Answer{}, faults[:min(len(faults), maxFaults)]
	}
	raw, err := encode(sent)
	if err != nil {
		return Answer{}, []Fault{invalid("cannot be encoded")}
	}
	return Answer{raw, paths}, nil
}

// validateForm checks the answer to a form: only an acceptance has its fields.
func (q Question) validateForm(m members) (object, []Fault) {
	if m["action"] != "accept" {
		return validateAction(m)
	}
	faults := m.unexpected(nil, "action", "content")
	content, has := m["content"]
	at := []string{"content"}
	if !has {
		return nil, append(faults, Fault{refusal.MissingArgument, at,
			pathName(at) + " is missing. An accepted form requires it: an object with the fields of the form."})
	}
	fields, wrong := asObject(content, at)
	if faults = append(faults, wrong...); wrong != nil {
		return nil, faults
	}
	if q.form == nil {
		return nil, append(faults, invalid("is to no form"))
	}
	for _, f := range q.form.faults(fields) {
		faults = append(faults, Fault{f.Code, append([]string{"content"}, f.Path...), f.Message})
	}
	return object{{"action", "accept"}, {"content", content}}, faults
}

// validateAction judges an answer that says only what a person did.
func validateAction(m members) (object, []Fault) {
	faults := m.unexpected(nil, "action")
	action, wrong := m.requiredText("action", nil)
	if faults = append(faults, wrong...); wrong == nil && action != "accept" && action != "decline" && action != "cancel" {
		faults = append(faults, invalid("must be accept, decline or cancel", "action"))
	}
	return object{{"action", action}}, faults
}

// validateSampling judges a message of the caller's model.
func validateSampling(m members) (object, []Fault) {
	faults := m.unexpected(nil, "role", "content", "model", "stopReason")
	role, wrong := m.requiredText("role", nil)
	if faults = append(faults, wrong...); wrong == nil && role != "assistant" {
		faults = append(faults, invalid("must be assistant", "role"))
	}
	model, wrong := m.requiredText("model", nil)
	if faults = append(faults, wrong...); wrong == nil && model == "" {
		faults = append(faults, invalid("must name the model", "model"))
	}
	var content any
	if value, has := m["content"]; has {
		content, wrong = readContent(value, func(s string) string { return s })
		faults = append(faults, wrong...)
	} else {
		at := []string{"content"}
		faults = append(faults, Fault{refusal.MissingArgument, at,
			pathName(at) + " is missing. This answer requires it: a text, an image or a sound, or a list of them."})
	}
	sent := object{{"role", role}, {"content", content}, {"model", model}}
	if _, has := m["stopReason"]; has {
		reason, wrong := m.requiredText("stopReason", nil)
		faults = append(faults, wrong...)
		sent.add("stopReason", reason)
	}
	return sent, faults
}

// validateRoots judges a list of folders.
func validateRoots(m members) (sent object, paths []string, faults []Fault) {
	faults = m.unexpected(nil, "roots")
	at := []string{"roots"}
	value, has := m["roots"]
	list, ok := value.([]any)
	switch {
	case !has:
		return nil, nil, append(faults, Fault{refusal.MissingArgument, at,
			pathName(at) + " is missing. This answer requires it: a list of folders."})
	case !ok:
		return nil, nil, append(faults, Fault{refusal.WrongType, at, pathName(at) + " must be an array."})
	case len(list) > maxRoots:
		return nil, nil, append(faults, invalid("must hold at most "+strconv.Itoa(maxRoots)+" folders", "roots"))
	}
	roots := []object{}
	for i, one := range list {
		root, path, wrong := validateRoot(one, []string{"roots", strconv.Itoa(i)})
		roots, paths, faults = append(roots, root), append(paths, path), append(faults, wrong...)
	}
	return object{{"roots", roots}}, paths, faults
}

func validateRoot(value any, path []string) (sent object, folder string, faults []Fault) {
	m, faults := asObject(value, path)
	if faults != nil {
		return nil, "", faults
	}
	faults = m.unexpected(path, "uri", "name")
	uri, wrong := m.requiredText("uri", path)
	faults = append(faults, wrong...)
	if folder, ok := pathOfFileURI(uri); ok {
		sent = object{{"uri", uri}}
		if _, has := m["name"]; has {
			display, wrong := m.requiredText("name", path)
			faults = append(faults, wrong...)
			sent.add("name", display)
		}
		return sent, folder, faults
	}
	if wrong == nil {
		faults = append(faults, invalid("must be a plain file:// URI of an absolute path, without a host, a query or a fragment",
			append(slices.Clone(path), "uri")...))
	}
	return nil, "", faults
}

// invalid is a fault of a value.
func invalid(requirement string, path ...string) Fault {
	return Fault{refusal.InvalidValue, path, pathName(path) + " " + requirement + "."}
}

// pathName names a place of an answer.
func pathName(path []string) string {
	if len(path) == 0 {
		return "The answer"
	}
	return "Member " + parser.Quote(strings.Join(path, "."))
}

func sortedNames(m members) []string { return slices.Sorted(maps.Keys(m)) }
