package boundary

import "testing"

func BenchmarkWithin(b *testing.B) {
	p, root, _, _ := tree(b)
	for kind, value := range map[string]string{KindPath: root + "/in/deep/new", KindHost: "a.b.example.org", KindURL: "https://a.example.org:8443/x?y=z"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Within(kind, value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
