package openai

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

// ReadMembers takes apart JSON that was read strictly: an object or an array, one level deep.
func ReadMembers(raw []byte) (names []string, values [][]byte) {
	if o, ok := readMembers(raw); ok {
		for _, m := range o {
			names, values = append(names, m.name), append(values, m.value)
		}
	}
	if list, ok := elements(raw); ok {
		for _, v := range list {
			values = append(values, v)
		}
	}
	return names, values
}

// TooManyMembers reports whether objects that stand in one another have too many members.
func TooManyMembers(raw []byte) bool { return tooManyMembers(raw) }
