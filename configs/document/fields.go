package document

import "time"

// FieldReader reads one key that a mapping may have.
type FieldReader struct {
	key  string
	read func(Node)
}

// Field reads the value of a key with read.
func Field(key string, read func(Node)) FieldReader { return FieldReader{key: key, read: read} }

// Text is the field of a string that is not empty.
func Text(key, of string, into *string) FieldReader {
	return Field(key, func(n Node) { n.Text(of, into) })
}

// Texts is the field of a list of strings that are not empty.
func Texts(key, of string, into *[]string) FieldReader {
	return Field(key, func(n Node) { n.Texts(of, into) })
}

// Duration is the field of a Go duration above zero.
func Duration(key, of string, into *time.Duration) FieldReader {
	return Field(key, func(n Node) { n.Duration(of, into) })
}

// Group is the field of a mapping of known keys.
func Group(key string, fields ...FieldReader) FieldReader {
	return Field(key, func(n Node) { n.Object(fields...) })
}

// Parsed is the field of a string that parse reads, whose error is the fault.
func Parsed[T any](key, of string, into *T, parse func(string) (T, error)) FieldReader {
	return Field(key, func(n Node) {
		var text string
		if !n.Text(of, &text) {
			return
		}
		value, err := parse(text)
		if err != nil {
			n.Fail("%v", err)
			return
		}
		*into = value
	})
}

// Int is the field of a whole number within bounds.
func Int[T int | int64](key, of string, low, high int64, into *T) FieldReader {
	return Field(key, func(n Node) { ReadInt(n, of, low, high, into) })
}

// Choice is the field of one of a few words.
func Choice[W ~string](key, of string, into *W, words ...W) FieldReader {
	return Field(key, func(n Node) { ReadChoice(n, of, into, words...) })
}
