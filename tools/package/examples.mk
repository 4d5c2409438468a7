# SPDX-License-Identifier: MIT
#
# Builds the example consumers. Copy this folder to a place that you can write to, then:
#
#   make                 the C and the C++ example
#   make rust go         the others (python/consumer.py runs as it is)
#   make form_d_consumer the C example for form D of the layout; also form_b and form_c
#   kmes-conformance -- ./c_consumer

CFLAGS ?= -O2 -g
CXXFLAGS ?= -O2 -g
CORE := $(patsubst %.c,%.o,$(wildcard kmes/*.c))

all: c_consumer cpp_consumer
rust: rust_consumer
go: go_consumer

c_consumer: c/consumer.c
	$(CC) -std=c11 $(CFLAGS) -pthread -o $@ $<

form_%_consumer: form_%_consumer.c
	$(CC) -std=c11 $(CFLAGS) -pthread -o $@ $<

form_%_consumer.c: c/consumer.c form_%/consumer.diff
	patch -s -o $@ c/consumer.c form_$*/consumer.diff

# On the reader of this project, kmes/reader.h.
cpp_consumer: cpp/consumer.cc $(CORE)
	$(CXX) -std=c++20 $(CXXFLAGS) -I. -pthread -o $@ $^

kmes/%.o: kmes/%.c
	$(CC) -std=c11 $(CFLAGS) -I. -c -o $@ $<

rust_consumer: rust/consumer.rs
	rustc --edition 2021 -O -g -o $@ $<

go_consumer: go/consumer.go
	CGO_ENABLED=0 go build -o $@ $<

clean:
	rm -f c_consumer cpp_consumer rust_consumer go_consumer form_*_consumer form_*_consumer.c \
		kmes/*.o

.PHONY: all rust go clean
