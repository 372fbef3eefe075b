package elicitation

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// object is encoded with its members in their order, which people see.
type object []member

type member struct {
	name  string
	value any
}

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// MarshalJSON encodes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := encode(m.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// encode is JSON on one line, with nothing escaped that need not be.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// members are those of an object of a question, as they were read.
type members map[string]any

// checkNames refuses members of other names than these.
func (m members) checkNames(names ...string) error {
	for name, value := range m {
		if _, ok := value.(map[string]any); name == "_meta" && ok {
			continue
		}
		if !slices.Contains(names, name) {
			return errors.New("a part of a question has a member that it cannot have")
		}
	}
	return nil
}

// text is a member that is a string; absent, it is empty.
func (m members) text(name string) (s string, has bool, err error) {
	value, has := m[name]
	if !has {
		return "", false, nil
	}
	s, ok := value.(string)
	if !ok {
		return "", false, errors.New("a text of a question is no string")
	}
	return s, true, nil
}

// requiredNonEmpty returns a required text that must not be empty.
func (m members) requiredNonEmpty(name string) (string, error) {
	s, _, err := m.text(name)
	if err == nil && strings.TrimSpace(s) == "" {
		err = errors.New("a text that a question must have is absent or empty")
	}
	return s, err
}

// list is a member that is an array; absent, it is nil.
func (m members) list(name string) (list []any, has bool, err error) {
	value, has := m[name]
	if !has {
		return nil, false, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false, errors.New("a list of a question is no array")
	}
	return list, true, nil
}

// texts is a member that is an array of strings.
func (m members) texts(name string) (texts []string, has bool, err error) {
	list, has, err := m.list(name)
	for _, value := range list {
		s, ok := value.(string)
		if !ok {
			return nil, false, errors.New("a list of texts of a question holds something else")
		}
		texts = append(texts, s)
	}
	return texts, has, err
}

// number is a number, and how it was written.
type number struct {
	decimal.Decimal
	literal json.Number
}

// number is a member that is a number.
func (m members) number(name string) (n number, has bool, err error) {
	value, has := m[name]
	if !has {
		return number{}, false, nil
	}
	if n, has = asNumber(value); !has {
		return number{}, false, errors.New("a number of a question is none")
	}
	return n, true, nil
}

// asNumber returns the number that a value is.
func asNumber(value any) (n number, ok bool) {
	if n.literal, ok = value.(json.Number); !ok {
		return number{}, false
	}
	n.Decimal, ok = decimal.Parse(string(n.literal))
	return n, ok
}

var one = decimal.Decimal{Digits: "1"} // read only

// isFraction reports whether a number is from 0 to 1.
func (n number) isFraction() bool { return n.Sign() >= 0 && n.Compare(one) <= 0 }

// orderedNames is an object of which only the order of its members is read.
type orderedNames []string

// UnmarshalJSON reads the names in their order.
func (n *orderedNames) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		s, ok := name.(string)
		if !ok {
			return errors.New("no object")
		}
		*n = append(*n, s)
	}
	return nil
}
