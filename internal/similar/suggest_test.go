package similar

import "testing"

func TestDidYouMean(t *testing.T) {
	names := []string{"web.search", "web.fetch", "ab", "a"}
	for word, want := range map[string]string{
		"web.serch": ` (did you mean "web.search"?)`, "WEB.FETCH": ` (did you mean "web.fetch"?)`, "web.fetsch": ` (did you mean "web.fetch"?)`,
		"files.read": "", "xy": "", "": "", "abc": ` (did you mean "ab"?)`,
	} {
		if got := DidYouMean(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	s := Suggester{Left: 2}
	for i, want := range []bool{true, true, false} {
		if got := s.DidYouMean("web.serch", names) != ""; got != want {
			t.Errorf("hint %d: %v", i, got)
		}
	}
	if (&Suggester{}).DidYouMean("web.serch", names) != "" {
		t.Error("the zero value gives a hint")
	}
}
