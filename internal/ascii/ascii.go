// Package ascii tells which texts consist of plain ASCII characters, for values that are
// compared byte for byte, or that stand where nothing else can: in headers, keys and URLs.
package ascii

// IsVisible reports whether a text holds nothing but the visible characters of ASCII, without
// spaces: ! to ~. The empty text is visible.
func IsVisible(s string) bool { return within(s, '!') }

// IsPrintable is IsVisible with spaces.
func IsPrintable(s string) bool { return within(s, ' ') }

func within(s string, least byte) bool {
	for i := range len(s) {
		if s[i] < least || s[i] > '~' {
			return false
		}
	}
	return true
}
