// SPDX-License-Identifier: GPL-2.0-only
//
// guest_test NAME [ARGUMENTS...]: runs one test of the module in the virtual machine.
// Exit status: 0 passed; 1 failed, after a line with the reason; 2 bad usage.
#include <cstdio>
#include <map>
#include <string>

#include "support.h"

int main(int count, char** words) {
    using namespace kmes::guest;
    const std::map<std::string, void (*)(const Arguments&)> tests = {
        {"attach", test_attach},
        {"permissions", test_permissions},
        {"references", test_references},
        {"wake", test_wake},
        {"load", test_load},
        {"resize", test_resize},
        {"hotplug", test_hotplug},
        {"failures", test_failures},
        {"failing-loads", test_failing_loads},
        {"unload", test_unload},
        {"monopolised", test_monopolised},
        {"faults", test_faults},
        {"huge-pages", test_huge_pages},
    };
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto test = tests.find(count > 1 ? words[1] : "");
    if (test == tests.end()) {
        std::fprintf(stderr, "usage: guest_test NAME [ARGUMENTS...]; names:");
        for (const auto& [name, function] : tests) std::fprintf(stderr, " %s", name.c_str());
        std::fprintf(stderr, "\n");
        return 2;
    }
    test->second(Arguments(words + 2, words + count));
    return 0;
}
