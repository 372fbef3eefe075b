package redisconn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/redisconn"
)

// Exactly one way to Redis is accepted, and no error quotes what it found.
func TestValidate(t *testing.T) {
	const password = "hunter2"
	at := func(u string) func() string { return func() string { return u } }
	for name, c := range map[string]struct {
		options redisconn.Options
		want    string // in the error; "" is none
	}{
		"url":            {redisconn.Options{URL: at("redis://u:" + password + "@127.0.0.1:1/2")}, ""},
		"url with TLS":   {redisconn.Options{URL: at("rediss://127.0.0.1:1")}, ""},
		"sentinel":       {redisconn.Options{Sentinel: redisconn.Sentinel{Master: "m", Addresses: []string{"127.0.0.1:1"}}}, ""},
		"cluster":        {redisconn.Options{Cluster: []string{"127.0.0.1:1"}}, ""},
		"nothing":        {redisconn.Options{}, "found 0 of url, sentinel and cluster"},
		"two":            {redisconn.Options{URL: at("redis://127.0.0.1:1"), Cluster: []string{"127.0.0.1:1"}}, "found 2 of url"},
		"no master":      {redisconn.Options{Sentinel: redisconn.Sentinel{Addresses: []string{"127.0.0.1:1"}}}, "without a master's name"},
		"no sentinels":   {redisconn.Options{Sentinel: redisconn.Sentinel{Master: "m"}}, "without a master's name or without addresses"},
		"another scheme": {redisconn.Options{URL: at("http://u:" + password + "@127.0.0.1:1")}, "found a url of another form"},
		"a query":        {redisconn.Options{URL: at("redis://u:" + password + "@127.0.0.1:1?max_retries=3")}, "without options"},
		"no host":        {redisconn.Options{URL: at("redis:///0")}, "found a url of another form"},
		"no number":      {redisconn.Options{URL: at("redis://u:" + password + "@127.0.0.1:1/one")}, "found a url of another form"},
	} {
		err := c.options.Validate()
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) || strings.Contains(got, password) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
		if text := fmt.Sprintf("%+v %#v", c.options, c.options); strings.Contains(text, password) {
			t.Errorf("%s: printed, the options show %s", name, text)
		}
	}
}

func TestKeyPrefix(t *testing.T) {
	for given, want := range map[string]string{"": "callgate:", "x:": "x:"} {
		if got := (&redisconn.Options{Prefix: given}).KeyPrefix(); got != want {
			t.Errorf("%q: got %q, expected %q", given, got, want)
		}
	}
}
