import Control.Concurrent
import Control.Exception
import qualified Data.Map as M
import System.Mem
main :: IO ()
main = do
  let m = M.fromList [(i, show i) | i <- [1 .. 20000 :: Int]]
  performGC
  print (M.foldl' (\n s -> n + length s) 0 m)
  done <- newEmptyMVar
  _ <- forkIO (performGC >> putMVar done (sum [1 .. 100000 :: Int]))
  takeMVar done >>= print
  r <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
  print r
