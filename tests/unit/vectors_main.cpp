// SPDX-License-Identifier: Apache-2.0
// Writes the golden packets as commented hex files, or as binary files for a fuzzing corpus.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "unit/vectors.hpp"

int main(int argc, char** argv) {
  const std::string_view form = argc == 3 ? argv[1] : "";
  if (form != "--hex" && form != "--binary") {
    std::fprintf(stderr, "usage: %s --hex|--binary FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[2];
  std::filesystem::create_directories(folder);
  std::size_t count = 0;
  for (const srd::test::Vector& vector : srd::test::make_vectors()) {
    const bool hex = form == "--hex";
    std::ofstream file(folder / (vector.name + (hex ? ".hex" : "")), std::ios::binary);
    if (hex) {
      file << srd::test::to_hex_file(vector);
    } else {
      file.write(reinterpret_cast<const char*>(vector.bytes.data()),
                 static_cast<std::streamsize>(vector.bytes.size()));
    }
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s in %s\n", vector.name.c_str(), argv[2]);
      return 1;
    }
    ++count;
  }
  std::printf("%zu packets written to %s\n", count, argv[2]);
  return 0;
}
