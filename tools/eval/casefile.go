package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

//go:embed cases.jsonl
var builtInCases []byte

// BuiltInCases returns our own cases, for the built-in configuration.
func BuiltInCases() ([]Case, error) { return ReadCases("cases.jsonl", builtInCases) }

// ReadCases reads cases, one JSON object a line. An unknown, missing or repeated member, two
// cases of one name, and a file without a case are errors, with the file and the line.
func ReadCases(name string, data []byte) ([]Case, error) {
	var cases []Case
	names := map[string]bool{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var c Case
		err := decodeStrictly(line, &c)
		if err == nil {
			err = c.check()
		}
		if err == nil && names[c.Name] {
			err = fmt.Errorf("there are two cases %q", c.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		names[c.Name] = true
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s has no case", name)
	}
	return cases, nil
}

// maxCaseDepth bounds the nesting of a line.
const maxCaseDepth = 64

func decodeStrictly(line []byte, into any) error {
	if err := rawjson.Check(line, maxCaseDepth); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// check returns what is wrong with a case, and sets its completion from Base64.
func (c *Case) check() error {
	switch {
	case c.Name == "":
		return errors.New("the case has no name")
	case !slices.Contains(refusal.Codes(), c.Code):
		return fmt.Errorf("there is no code %q", c.Code)
	case c.Ends != EndsInCall && c.Ends != EndsInText:
		return fmt.Errorf("ends is %q; expected call or text", c.Ends)
	case (c.Ends == EndsInCall) != (c.Call != nil):
		return errors.New("a case that ends in a call states it as call, and no other does")
	case c.Call != nil && !isObject(c.Call.Arguments):
		return errors.New("call.arguments is no object")
	case c.Intent.Tool == "":
		return errors.New("intent.tool is missing")
	case c.Scene != "" && scenes[c.Scene] == nil:
		return fmt.Errorf("there is no scene %q; expected one of %s", c.Scene, strings.Join(Scenes(), ", "))
	case c.MaxBytes < 0:
		return fmt.Errorf("max_bytes is %d", c.MaxBytes)
	case c.Completion != "" && c.CompletionBase64 != "":
		return errors.New("the case has both completion and completion_b64")
	}
	if c.CompletionBase64 != "" {
		raw, err := base64.StdEncoding.DecodeString(c.CompletionBase64)
		if err != nil {
			return fmt.Errorf("completion_b64: %w", err)
		}
		c.Completion, c.CompletionBase64 = string(raw), ""
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	_, ok := rawjson.Map(raw)
	return ok
}
