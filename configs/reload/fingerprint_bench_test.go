package reload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// BenchmarkLook is what one look costs when nothing has moved.
func BenchmarkLook(b *testing.B) {
	for _, tools := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d tool files", tools), func(b *testing.B) {
			files := generationOf(b, 1)
			for n := range tools - 1 {
				files[fmt.Sprintf("tools/more%d.yaml", n)] = configtest.File{Data: strings.ReplaceAll(files["tools/web.yaml"].Data, "web.search", fmt.Sprintf("more.tool%d", n))}
			}
			main := configtest.Write(b, b.TempDir(), files)
			s := newFingerprint(main)
			if _, err := configs.LoadFrom(s, main, ""); err != nil {
				b.Fatal(err)
			}
			s.dropCache()
			b.ReportAllocs()
			for b.Loop() {
				if moved := s.changed(); moved != "" {
					b.Fatalf("%s moved", moved)
				}
			}
		})
	}
}
