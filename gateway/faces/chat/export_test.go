package chat

import "github.com/callgate/callgate/gateway/turns"

// Read reads the body of a request.
func Read(body []byte) error {
	_, err := read(body)
	return err
}

func read(body []byte) (turns.Dialogue, error) {
	members, model, err := turns.ReadBody(body)
	if err != nil {
		return nil, err
	}
	return Wire.Read(members, model)
}

// ToolChoiceNames are the tools that tool_choice of a request names.
func ToolChoiceNames(body []byte) ([]string, error) {
	d, err := read(body)
	if err != nil {
		return nil, err
	}
	return d.Tools().Choice.Names, nil
}
