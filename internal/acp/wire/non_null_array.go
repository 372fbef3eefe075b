package wire

import "encoding/json"

// List is an array that must be there: nil is written as an empty one.
type List[T any] []T

// MarshalJSON writes the array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}
