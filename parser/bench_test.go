package parser_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/parser"
)

// call300 is a call of 300 bytes, as models write them.
var call300 = []byte(`{"tool":{"name":"data.vector_search","arguments":{"embedding":[0.0123,-0.9981,0.5,0.25,-0.125,0.0625,3e-1,0.77],"top_k":12,"filter":{"field":"language","equals":"de"},"query":"What did the customer say about \"late\" deliveries in the second quarter, and who answered?","trace":true,"n":42}}}`)

var plainText = []byte(strings.Repeat("The quick brown fox [1] jumps over the lazy dog; f(x) = {x | x > 0} holds, naïvely. ", 50))

func BenchmarkCall300(b *testing.B) {
	b.Logf("%d bytes", len(call300))
	b.Run("json.Valid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(call300) {
				b.Fatal("invalid")
			}
		}
	})
	b.Run("Parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r := parser.Parse(call300, false, parser.Options{}); r.Kind != parser.Call {
				b.Fatal(r.Refusal)
			}
		}
	})
	b.Run("DecodeObject", func(b *testing.B) {
		r := parser.Parse(call300, false, parser.Options{})
		b.ReportAllocs()
		for b.Loop() {
			parser.DecodeObject(r.Arguments)
		}
	})
}

func BenchmarkProse(b *testing.B) {
	b.Run("utf8.Valid+ContainsAny", func(b *testing.B) {
		b.SetBytes(int64(len(plainText)))
		b.ReportAllocs()
		for b.Loop() {
			if !utf8.Valid(plainText) || bytes.ContainsAny(plainText, "\x00<`") {
				b.Fatal("found")
			}
		}
	})
	b.Run("Parse", func(b *testing.B) {
		b.SetBytes(int64(len(plainText)))
		b.ReportAllocs()
		for b.Loop() {
			if r := parser.Parse(plainText, false, parser.Options{}); r.Kind != parser.Text {
				b.Fatal(r.Refusal)
			}
		}
	})
	b.Run("Stream64", func(b *testing.B) {
		b.SetBytes(int64(len(plainText)))
		b.ReportAllocs()
		for b.Loop() {
			s := parser.NewStream(parser.Options{})
			for i := 0; i < len(plainText); i += 64 {
				s.Write(plainText[i:min(i+64, len(plainText))])
			}
			if r := s.Close(false); r.Kind != parser.Text {
				b.Fatal(r.Refusal)
			}
		}
	})
}

// BenchmarkHostile shows that the worst inputs cost what their length says.
func BenchmarkHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"braces": "{", "candidates": `{"`, "marks": "<tool_cal", "brackets": "[", "escapes": `{"\u0041`, "backticks": "`", "runes": "\u2581", "array": "[[",
	} {
		for _, size := range []int{1 << 10, 1 << 16, 1 << 20} {
			in := []byte("x " + strings.Repeat(unit, size/len(unit)))
			b.Run(name+"/"+itoa(size), func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					parser.Parse(in, false, parser.Options{MaxBytes: 1 << 21})
				}
			})
		}
	}
}
