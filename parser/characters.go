package parser

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// SkipSpace returns the index of the first byte from i on that is not JSON white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hexValue(c byte) uint32 {
	switch {
	case c <= '9':
		return uint32(c - '0')
	case c <= 'F':
		return uint32(c-'A') + 10
	default:
		return uint32(c-'a') + 10
	}
}

func hexUnit(digits []byte) uint32 {
	var unit uint32
	for _, c := range digits[:4] {
		unit = unit<<4 | hexValue(c)
	}
	return unit
}
