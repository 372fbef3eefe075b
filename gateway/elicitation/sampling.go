package elicitation

import (
	"errors"
	"slices"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/wrapper"
)

const (
	// maxMessages bounds how many messages a question for the caller's model has, and
	// how many parts each, and an answer.
	maxMessages = 64
	// maxTexts bounds hints and stop sequences.
	maxTexts = 16
)

var largestCount = decimal.Decimal{Digits: "1", Exponent: 9} // maxCount; read only

var errSampling = errors.New("a question for the caller's model is not of its form")

// readSampling reads the parameters of a question for the caller's model. The server's
// tools, and context of other servers, are not offered to it.
func readSampling(m members) (object, error) {
	if err := m.checkNames("messages", "maxTokens", "includeContext", "metadata", "modelPreferences", "stopSequences", "systemPrompt",
		"temperature"); err != nil {
		return nil, err
	}
	display, err := readMessages(m)
	if err != nil {
		return nil, err
	}
	most, has, err := m.number("maxTokens")
	if err != nil || !has || !most.IsInteger() || most.Sign() <= 0 || most.Compare(largestCount) > 0 {
		return nil, errSampling
	}
	display.add("maxTokens", most.literal)
	if from, has, err := m.text("includeContext"); err != nil || has && from != "none" {
		return nil, errors.New("a question for the caller's model asks for a context that is not offered")
	}
	if prompt, has, err := m.text("systemPrompt"); err != nil {
		return nil, err
	} else if has {
		display.add("systemPrompt", wrapper.EscapeText(prompt))
	}
	if heat, has, err := m.number("temperature"); err != nil || has && heat.Sign() < 0 {
		return nil, errSampling
	} else if has {
		display.add("temperature", heat.literal)
	}
	if stops, has, err := m.texts("stopSequences"); err != nil || len(stops) > maxTexts ||
		slices.ContainsFunc(stops, func(s string) bool { return s == "" || !isPlain(s) }) {
		return nil, errSampling
	} else if has {
		display.add("stopSequences", append([]string{}, stops...))
	}
	if value, has := m["metadata"]; has {
		if _, ok := value.(map[string]any); !ok {
			return nil, errSampling
		}
		display.add("metadata", value)
	}
	err = readPreferences(m, &display)
	return display, err
}

func readMessages(m members) (object, error) {
	list, has, err := m.list("messages")
	if err != nil || !has || len(list) == 0 || len(list) > maxMessages {
		return nil, errSampling
	}
	var messages []object
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, errSampling
		}
		message := members(fields)
		if err := message.checkNames("role", "content"); err != nil {
			return nil, err
		}
		if role := message["role"]; role != "user" && role != "assistant" {
			return nil, errSampling
		}
		content, faults := readContent(message["content"], wrapper.EscapeText)
		if len(faults) > 0 {
			return nil, errSampling
		}
		messages = append(messages, object{{"role", message["role"]}, {"content", content}})
	}
	return object{{"messages", messages}}, nil
}

// readPreferences reads which model a tool would like.
func readPreferences(m members, display *object) error {
	value, has := m["modelPreferences"]
	if !has {
		return nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return errSampling
	}
	of, preferences := members(fields), object{}
	if err := of.checkNames("hints", "costPriority", "speedPriority", "intelligencePriority"); err != nil {
		return err
	}
	list, has, err := of.list("hints")
	if err != nil || len(list) > maxTexts {
		return errSampling
	}
	hints := []object{}
	for _, item := range list {
		hint, ok := item.(map[string]any)
		if !ok || members(hint).checkNames("name") != nil {
			return errSampling
		}
		name, named, err := members(hint).text("name")
		if err != nil {
			return err
		}
		hints = append(hints, object{})
		if named {
			hints[len(hints)-1].add("name", wrapper.EscapeText(name))
		}
	}
	if has {
		preferences.add("hints", hints)
	}
	for _, name := range []string{"costPriority", "speedPriority", "intelligencePriority"} {
		n, has, err := of.number(name)
		if err != nil || has && !n.isFraction() {
			return errSampling
		}
		if has {
			preferences.add(name, n.literal)
		}
	}
	display.add("modelPreferences", preferences)
	return nil
}
