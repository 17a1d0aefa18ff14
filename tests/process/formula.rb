# Does with a formula for Homebrew, on this machine, what `brew install --formula` and `brew test` do: FORMULA ARCHIVES PREFIX.
# Homebrew itself is no package of a registry; of its language, this knows the words that the formula uses.
require "digest"
require "fileutils"
require "tmpdir"

formula, ARCHIVES, PREFIX = ARGV.map { |path| File.expand_path(path) }
MACHINE = RbConfig::CONFIG["host_cpu"] == "x86_64" ? :intel : :arm

class Folder
  def initialize(path) = @path = path
  def to_s = @path

  def install(*files)
    FileUtils.mkdir_p(@path)
    files.flatten.each do |file|
      pairs = file.is_a?(Hash) ? file : { file => File.basename(file) }
      pairs.each { |from, to| FileUtils.cp(from, File.join(@path, to)) }
    end
  end
end

class Formula
  class << self
    %i[desc homepage license version url sha256 depends_on].each do |word|
      define_method(word) { |*value| value.empty? ? @facts[word] : @facts[word] = value.first }
    end
    def inherited(formula)
      super
      formula.instance_variable_set(:@facts, {})
    end
    def on_linux = yield
    def on_intel = MACHINE == :intel && yield
    def on_arm = MACHINE == :arm && yield
    def test(&block) = block ? @test = block : @test
  end

  def version = self.class.version
  def bin = Folder.new("#{PREFIX}/bin")
  def man1 = Folder.new("#{PREFIX}/share/man/man1")
  def bash_completion = Folder.new("#{PREFIX}/etc/bash_completion.d")
  def fish_completion = Folder.new("#{PREFIX}/share/fish/vendor_completions.d")
  def zsh_completion = Folder.new("#{PREFIX}/share/zsh/site-functions")
  def shell_output(command) = IO.popen(command, &:read)
  def assert_match(part, text) = text.include?(part) || abort("#{text.inspect} does not have #{part.inspect}")
end

load formula
archive = File.join(ARCHIVES, File.basename(Decree.url))
sum = Digest::SHA256.file(archive).hexdigest
abort "#{archive} has the checksum #{sum}, and not #{Decree.sha256}" unless sum == Decree.sha256
Dir.mktmpdir do |folder|
  system("tar", "-xzf", archive, "-C", folder, "--strip-components=1", exception: true)
  Dir.chdir(folder) { Decree.new.install }
end
Decree.new.instance_eval(&Decree.test)
