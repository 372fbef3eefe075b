package weburl_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/weburl"
)

func TestShowable(t *testing.T) {
	for url, visible := range corpora.URLs(t) {
		if got := weburl.IsPublic(url); got != visible {
			t.Errorf("%q: showable is %v", url, got)
		}
	}
	long := "https://example.com/" + strings.Repeat("x", weburl.MaxBytes-len("https://example.com/"))
	if !weburl.IsPublic(long) || weburl.IsPublic(long+"x") {
		t.Errorf("a URL of %d bytes is not the longest", weburl.MaxBytes)
	}
	label, name := strings.Repeat("a", 63), strings.Repeat("a.", 125)
	for url, want := range map[string]bool{
		"https://" + label + ".example/": true, "https://a" + label + ".example/": false,
		"https://" + name + "abc/": true, "https://" + name + "abcd/": false,
	} {
		if weburl.IsPublic(url) != want {
			t.Errorf("%q: showable is %v", url, !want)
		}
	}
}
