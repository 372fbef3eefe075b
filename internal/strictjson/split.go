package strictjson

import "bytes"

// The functions below split JSON that was checked before, by its quotes and brackets alone. They
// need a small part of the time of a check. Of other bytes they find anything, or ErrSyntax.

// EachMember calls take for each member of an object, with its decoded name, and with the offsets
// of its value and of the byte behind it. The error is that of take.
func EachMember(checked []byte, take func(name []byte, start, end int) error) error {
	i, err := opened(checked, '{')
	for err == nil && checked[i] != '}' {
		end := literalEnd(checked, i)
		if end < 0 {
			return ErrSyntax
		}
		name, fault := Unquote(checked[i:end])
		if fault != nil {
			return ErrSyntax
		}
		if i = spaceEnd(checked, end); i == len(checked) || checked[i] != ':' {
			return ErrSyntax
		}
		start := spaceEnd(checked, i+1)
		if end = valueEnd(checked, start); end < 0 {
			return ErrSyntax
		}
		if err := take(name, start, end); err != nil {
			return err
		}
		i, err = next(checked, end, '}')
	}
	return err
}

// EachElement calls take for each element of an array, with its bytes. The error is that of take.
func EachElement(checked []byte, take func(value []byte) error) error {
	i, err := opened(checked, '[')
	for err == nil && checked[i] != ']' {
		end := valueEnd(checked, i)
		if end < 0 {
			return ErrSyntax
		}
		if err := take(checked[i:end]); err != nil {
			return err
		}
		i, err = next(checked, end, ']')
	}
	return err
}

// opened returns the index behind a bracket and the white space behind it. There is a byte at it.
func opened(b []byte, bracket byte) (int, error) {
	i := spaceEnd(b, 0)
	if i == len(b) || b[i] != bracket {
		return 0, ErrSyntax
	}
	if i = spaceEnd(b, i+1); i == len(b) {
		return 0, ErrSyntax
	}
	return i, nil
}

// next returns the index of the next part, or of the bracket that closes: there is a byte at it.
func next(b []byte, i int, closing byte) (int, error) {
	i = spaceEnd(b, i)
	if i < len(b) && b[i] == closing {
		return i, nil
	}
	if i == len(b) || b[i] != ',' {
		return 0, ErrSyntax
	}
	if i = spaceEnd(b, i+1); i == len(b) || b[i] == closing {
		return 0, ErrSyntax
	}
	return i, nil
}

// spaceEnd returns the index of the first byte from i on that is no white space, or the length.
func spaceEnd(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// literalEnd returns the index behind the string literal that begins at i; -1 if none does, or
// if it does not end.
func literalEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	// Most have no escape: what stands between two quotes is searched at once.
	end := bytes.IndexByte(b[i+1:], '"')
	if end < 0 {
		return -1
	}
	escape := bytes.IndexByte(b[i+1:i+1+end], '\\')
	if escape < 0 {
		return i + end + 2
	}
	for i += 1 + escape; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// valueEnd returns the index behind the value that begins at i, or -1.
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = literalEnd(b, i); i < 0 || depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return -1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
		default:
			if depth == 0 {
				return wordEnd(b, i)
			}
		}
		i++
	}
	return -1
}

// wordEnd returns the index behind a number, true, false or null.
func wordEnd(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return i
		}
		i++
	}
	return i
}
