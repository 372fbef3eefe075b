package chat

// Read reads the body of a request.
func Read(body []byte) error {
	_, err := readRequest(body)
	return err
}

// ToolChoiceNames are the tools that tool_choice of a request names.
func ToolChoiceNames(body []byte) ([]string, error) {
	r, err := readRequest(body)
	if err != nil {
		return nil, err
	}
	return r.choice.Names, nil
}
